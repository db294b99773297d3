#pragma once

// What outlives a process: the sessions on disk.
//
//   <root>/sessions/<id>/session.json   the record
//   <root>/sessions/<id>/lock           flock'ed by the process that runs the session
//   <root>/sessions/<id>/workspace/     the session's files
//   <root>/sessions/<id>/image.<n>/     its frozen kernel, if the record names it
//   <root>/sessions/<id>/history.jsonl  what was executed (history_file.hpp); may be absent
//
// Everything below root is 0700: a session id is a secret. Crash-safe: a record is written aside,
// synced and renamed; a directory without a readable record is an unfinished one and is swept, and
// so is an image that the record does not name once somebody opens the session.
// All functions block for a few small file operations; call them on a pool.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace sandbox {

// The state directory cannot be used: for the reader, with the path, the reason and the remedy.
struct StoreError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A session's frozen kernel on disk.
struct ImageRecord {
  int number = 0;        // of its directory, image.<number>
  int generation = 0;    // of the kernel that was frozen
  int execution = 0;     // the last one whose effects are in it; 0: none
  bool current = false;  // nothing has run since: waking from it loses nothing
  std::uint64_t bytes = 0;
  std::string seal;               // its fingerprint(): another image in its place is refused
  std::vector<std::string> lost;  // what was not carried; readable, few
  std::optional<std::string> background;  // the end of what it printed and no result has shown yet
};

struct SessionRecord {
  std::string id;         // [a-z0-9-], unguessable
  std::string principal;  // whom it belongs to
  std::string name;       // given by its owner; unique per principal; may be empty
  std::string python;     // name of its template
  bool network = false;
  int generation = 0;                  // kernel starts so far
  std::int64_t created = 0, used = 0;  // seconds since the epoch
  std::optional<ImageRecord> image;
  // What became of the last kernel, where the image does not say it: "was stopped, …".
  std::optional<std::string> ended;
  // A hash of what the calls that mean this session have in common; they find it by that.
  std::optional<std::string> conversation;
};

// A session's directory, held by this process until destroyed.
class SessionLease {
 public:
  SessionLease() = default;  // of nothing
  SessionLease(SessionLease&& other) noexcept;
  SessionLease& operator=(SessionLease&& other) noexcept;
  ~SessionLease();

  SessionRecord record;
  std::filesystem::path directory;
  std::filesystem::path workspace() const { return directory / "workspace"; }
  std::filesystem::path history() const { return directory / "history.jsonl"; }
  std::filesystem::path image(int number) const {
    return directory / ("image." + std::to_string(number));
  }

 private:
  friend class SessionStore;
  SessionLease(SessionRecord r, std::filesystem::path d, int lock_fd);
  int lock_fd_ = -1;
};

class SessionStore {
 public:
  // Touches nothing on disk yet.
  explicit SessionStore(std::filesystem::path root);

  // Makes and locks a session's directory. Throws StoreError (read-only, full, not ours).
  SessionLease create(SessionRecord record);

  struct Lookup {
    enum class State { absent, busy, leased };
    State state = State::absent;
    std::optional<SessionLease> lease;  // when leased
  };
  // The principal's session with this id (or this name, or of this conversation), locked for this
  // process. busy: another process runs it.
  Lookup open(const std::string& principal, const std::string& id);
  Lookup open_named(const std::string& principal, const std::string& name);
  Lookup open_conversation(const std::string& principal, const std::string& conversation);

  // Rewrites the record. Throws StoreError; the old record then still stands.
  void save(const SessionLease& lease);
  // Deletes the session with its files; its directory stays locked until the lease goes. What
  // cannot be deleted now is swept later.
  void remove(const SessionLease& lease);

  // The principal's sessions on disk, newest use first, whoever runs them; without one, all.
  std::vector<SessionRecord> list(const std::optional<std::string>& principal) const;

  // Where the history of a session is, whoever runs it.
  std::filesystem::path history_of(const std::string& id) const {
    return root_ / "sessions" / id / "history.jsonl";
  }

  // Deletes sessions that nobody runs and that were last used before `oldest`, then the least
  // recently used ones until their files take at most `cap` bytes. Returns how many went.
  int sweep(std::int64_t oldest, std::uint64_t cap);

  const std::filesystem::path& root() const { return root_; }

 private:
  Lookup open_directory(const std::filesystem::path& directory, const std::string& principal);
  std::filesystem::path root_;
};

}  // namespace sandbox
