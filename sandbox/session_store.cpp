#include "sandbox/session_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/describe.hpp>
#include <cerrno>

#include "sandbox/remove_tree.hpp"
#include "sandbox/state_files.hpp"
#include "schemas/codec.hpp"

namespace sandbox {

namespace fs = std::filesystem;
BOOST_DESCRIBE_STRUCT(ImageRecord, (),
                      (number, generation, execution, current, bytes, seal, lost, background))
BOOST_DESCRIBE_STRUCT(SessionRecord, (),
                      (id, principal, name, python, network, generation, created, used, image,
                       ended, conversation))

namespace {

// -1: there is none, so nobody can hold it.
int lock_of(const fs::path& directory) {
  return open((directory / "lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
}

bool in_use(const fs::path& directory) {
  int fd = lock_of(directory);
  if (fd < 0) return false;
  bool held = flock(fd, LOCK_EX | LOCK_NB) != 0;
  close(fd);
  return held;
}

void write_record(const fs::path& directory, const SessionRecord& record) {
  write_json(directory / "session.json", schemas::encode(record));
}

// nullopt for anything that is not a whole, sound record of this very directory.
std::optional<SessionRecord> read_record(const fs::path& directory) {
  auto value = read_json(directory / "session.json");
  if (!value) return std::nullopt;
  try {
    auto record = schemas::decode<SessionRecord>(*value);
    if (record.id != directory.filename()) return std::nullopt;
    return record;
  } catch (const schemas::DecodeError&) {
    return std::nullopt;  // written by another version, or damaged: not a session of ours
  }
}

std::int64_t modified(const fs::path& path) {
  struct stat info;
  return lstat(path.c_str(), &info) == 0 ? info.st_mtime : 0;
}

// What a process left that died while it froze or restored a kernel.
void remove_leftovers(const SessionLease& lease) {
  std::vector<fs::path> leftovers;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(lease.directory, failed)) {
    std::string name = entry.path().filename();
    const auto& image = lease.record.image;
    bool named = image && entry.path() == lease.image(image->number);
    bool leftover = name.starts_with("image.") || name.starts_with("workspace.");
    if (leftover && !named) leftovers.push_back(entry.path());
  }
  for (const fs::path& path : leftovers) remove_tree(path);
}

// The record goes first: without it the directory is no session any more, whatever fails after.
void remove_session(const fs::path& directory) {
  std::error_code ignored;
  fs::remove(directory / "session.json", ignored);
  remove_tree(directory);
}

}  // namespace

SessionLease::SessionLease(SessionRecord r, fs::path d, int lock_fd)
    : record(std::move(r)), directory(std::move(d)), lock_fd_(lock_fd) {}

SessionLease::SessionLease(SessionLease&& other) noexcept
    : record(std::move(other.record)),
      directory(std::move(other.directory)),
      lock_fd_(std::exchange(other.lock_fd_, -1)) {}

SessionLease& SessionLease::operator=(SessionLease&& other) noexcept {
  std::swap(record, other.record);
  std::swap(directory, other.directory);
  std::swap(lock_fd_, other.lock_fd_);
  return *this;
}

SessionLease::~SessionLease() {
  if (lock_fd_ >= 0) close(lock_fd_);
}

SessionStore::SessionStore(fs::path root) : root_(std::move(root)) {}

SessionLease SessionStore::create(SessionRecord record) {
  make_private_directories(root_);
  make_private_directory(root_ / "sessions");
  fs::path directory = root_ / "sessions" / record.id;
  make_private_directory(directory);
  int lock = open_lock(directory);
  if (flock(lock, LOCK_EX | LOCK_NB) != 0) {
    close(lock);
    throw StoreError("The new session's directory " + directory.string() + " is already in use.");
  }
  SessionLease lease(std::move(record), directory, lock);
  try {
    make_private_directory(lease.workspace());
    write_record(directory, lease.record);
  } catch (const StoreError&) {
    std::error_code ignored;
    fs::remove_all(directory, ignored);
    throw;
  }
  return lease;
}

SessionStore::Lookup SessionStore::open_directory(const fs::path& directory,
                                                  const std::string& principal) {
  Lookup lookup;
  auto record = read_record(directory);
  if (!record || record->principal != principal) return lookup;
  SessionLease lease(SessionRecord(), directory, open_lock(directory));
  if (!try_lock(lease.lock_fd_)) {
    lookup.state = Lookup::State::busy;
    return lookup;
  }
  record = read_record(directory);  // who held it until now may have written or deleted it
  std::error_code absent;
  if (!record || !fs::is_directory(fs::symlink_status(lease.workspace(), absent))) return lookup;
  lease.record = std::move(*record);
  remove_leftovers(lease);
  lookup.state = Lookup::State::leased;
  lookup.lease.emplace(std::move(lease));
  return lookup;
}

SessionStore::Lookup SessionStore::open(const std::string& principal, const std::string& id) {
  if (!is_id(id)) return {};
  return open_directory(root_ / "sessions" / id, principal);
}

SessionStore::Lookup SessionStore::open_named(const std::string& principal,
                                              const std::string& name) {
  for (const SessionRecord& record : list(principal))
    if (record.name == name) return open_directory(root_ / "sessions" / record.id, principal);
  return {};
}

SessionStore::Lookup SessionStore::open_conversation(const std::string& principal,
                                                     const std::string& conversation) {
  for (const SessionRecord& record : list(principal))
    if (record.conversation == conversation)
      return open_directory(root_ / "sessions" / record.id, principal);
  return {};
}

void SessionStore::save(const SessionLease& lease) { write_record(lease.directory, lease.record); }

void SessionStore::remove(const SessionLease& lease) { remove_session(lease.directory); }

std::vector<SessionRecord> SessionStore::list(const std::optional<std::string>& principal) const {
  std::vector<SessionRecord> records;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(root_ / "sessions", absent)) {
    auto record = read_record(entry.path());
    bool wanted = record && (!principal || record->principal == *principal);
    if (wanted) records.push_back(std::move(*record));
  }
  std::ranges::sort(records, [](const auto& a, const auto& b) { return a.used > b.used; });
  return records;
}

int SessionStore::sweep(std::int64_t oldest, std::uint64_t cap) {
  struct Candidate {
    fs::path directory;
    std::int64_t used;
    std::uint64_t size;
  };
  std::vector<Candidate> candidates;
  std::uint64_t total = 0;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(root_ / "sessions", absent)) {
    auto record = read_record(entry.path());
    // A directory without a record may be one that another process is just making.
    std::int64_t used = record ? record->used : modified(entry.path());
    if (!record && used >= oldest) continue;
    if (in_use(entry.path())) continue;
    candidates.push_back({entry.path(), used, size_of(entry.path())});
    total += candidates.back().size;
  }
  std::ranges::sort(candidates, {}, &Candidate::used);
  int removed = 0;
  for (const Candidate& old : candidates) {
    if (old.used >= oldest && total <= cap) continue;
    SessionLease lease(SessionRecord(), old.directory, lock_of(old.directory));
    if (lease.lock_fd_ >= 0 && flock(lease.lock_fd_, LOCK_EX | LOCK_NB) != 0) continue;
    remove_session(old.directory);
    total -= std::min(total, old.size);
    ++removed;
  }
  return removed;
}

}  // namespace sandbox
