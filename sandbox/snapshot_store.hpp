#pragma once

// Snapshots on disk: a session's frozen kernel with its files, to go back to any number of times.
//
//   <root>/snapshots/<id>/snapshot.json   the record
//   <root>/snapshots/<id>/image/          the kernel, as Sandbox::freeze wrote it
//   <root>/snapshots/<id>/workspace/      the files
//   <root>/snapshots/<id>/history.jsonl   what was executed before it; may be absent
//   <root>/snapshots/<id>/lock            shared while it is read, exclusive while it is made
//
// 0700 throughout. A snapshot is made under a name with a dot before it and renamed when all of it
// is on disk, and renamed back before it is deleted: whenever the process dies there is a whole
// snapshot or none, and what has a dot and no lock holder is swept. All block; call them on a pool.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/session_store.hpp"

namespace sandbox {

struct SnapshotRecord {
  std::string id;         // [a-z0-9-], unguessable
  std::string principal;  // whom it belongs to
  std::string name;       // given by its owner; unique per principal; may be empty
  std::string session;    // it was made of
  std::string python;     // name of its template
  bool network = false;
  int execution = 0;  // the last one whose effects are in it; 0: none
  std::uint64_t image_bytes = 0, file_bytes = 0;
  std::optional<std::uint64_t> history_bytes;
  std::int64_t created = 0;
  std::string seal;               // the image's fingerprint()
  std::vector<std::string> lost;  // of memory and files; readable, few

  std::uint64_t bytes() const { return image_bytes + file_bytes + history_bytes.value_or(0); }
};

// A snapshot's directory, locked until destroyed.
class SnapshotHold {
 public:
  SnapshotHold(SnapshotRecord r, std::filesystem::path d, int lock_fd);
  SnapshotHold(SnapshotHold&& other) noexcept;
  SnapshotHold& operator=(SnapshotHold&& other) noexcept;
  ~SnapshotHold();

  SnapshotRecord record;
  std::filesystem::path directory;
  std::filesystem::path image() const { return directory / "image"; }
  std::filesystem::path workspace() const { return directory / "workspace"; }
  std::filesystem::path history() const { return directory / "history.jsonl"; }

 private:
  friend class SnapshotStore;
  int lock_fd_;
};

// What all snapshots together may be.
struct SnapshotLimits {
  std::uint64_t disk = 8ull << 30;  // bytes
  std::size_t per_principal = 100;
};

class SnapshotStore {
 public:
  // Touches nothing on disk yet.
  SnapshotStore(std::filesystem::path root, SnapshotLimits limits);

  // Begins one: an empty directory with an empty workspace/, that nobody else sees. StoreError when
  // there is no room for it, or the name is taken; nothing is there then.
  SnapshotHold begin(SnapshotRecord record);
  // Makes it one for good, as its record says now. StoreError as begin().
  void commit(SnapshotHold& draft);
  // Deletes one that was begun and is not to be.
  void discard(SnapshotHold draft);

  // The principal's snapshot of this id or name; it cannot be deleted while it is held.
  std::optional<SnapshotHold> open(const std::string& principal, const std::string& id_or_name);

  enum class Removal { absent, busy, removed };
  Removal remove(const std::string& principal, const std::string& id_or_name);

  // Newest first; of everybody without a principal.
  std::vector<SnapshotRecord> list(const std::optional<std::string>& principal) const;
  std::uint64_t bytes() const;  // of all
  std::uint64_t room() const;   // what is left of the limit

  std::vector<SnapshotRecord> made_before(std::int64_t oldest) const;
  // Deletes what was left unfinished.
  void sweep();

 private:
  std::optional<SnapshotHold> hold(const std::filesystem::path& directory, bool shared) const;
  void check(const SnapshotRecord& record, std::uint64_t bytes) const;
  std::optional<SnapshotRecord> find(const std::string& principal,
                                     const std::string& id_or_name) const;
  std::vector<std::filesystem::path> abandoned() const;
  bool remove_directory(const std::filesystem::path& directory);

  std::filesystem::path directory_;
  SnapshotLimits limits_;
};

}  // namespace sandbox
