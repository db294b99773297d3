#include "sandbox/snapshot_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <boost/describe.hpp>
#include <cerrno>

#include "sandbox/bounded_text.hpp"
#include "sandbox/remove_tree.hpp"
#include "sandbox/state_files.hpp"
#include "schemas/codec.hpp"

namespace sandbox {

namespace fs = std::filesystem;

BOOST_DESCRIBE_STRUCT(SnapshotRecord, (),
                      (id, principal, name, session, python, network, execution, image_bytes,
                       file_bytes, history_bytes, created, seal, lost))

namespace {

constexpr const char* kRecord = "snapshot.json";

// nullopt for anything that is not a whole, sound record of this very directory.
std::optional<SnapshotRecord> read_record(const fs::path& directory) {
  auto value = read_json(directory / kRecord);
  if (!value) return std::nullopt;
  try {
    auto record = schemas::decode<SnapshotRecord>(*value);
    if (record.id != directory.filename()) return std::nullopt;
    return record;
  } catch (const schemas::DecodeError&) {
    return std::nullopt;  // written by another version, or damaged: not a snapshot of ours
  }
}

// Its files were written by several hands; this waits for the disk once.
void sync_all(const fs::path& directory) {
  int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) fail_on("write", directory, errno);
  int error = syncfs(fd) == 0 ? 0 : errno;
  close(fd);
  if (error) fail_on("write", directory, error);
}

void sync_names(const fs::path& directory) {
  int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

// Held while it is decided what there may be, so that two processes do not both take the last room.
class Deciding {
 public:
  explicit Deciding(const fs::path& directory) : fd_(open_lock(directory)) { flock(fd_, LOCK_EX); }
  Deciding(const Deciding&) = delete;
  Deciding& operator=(const Deciding&) = delete;
  ~Deciding() { close(fd_); }

 private:
  int fd_;
};

std::string titles(const std::vector<SnapshotRecord>& records) {
  constexpr std::size_t kShown = 10;
  std::string text;
  for (std::size_t i = 0; i < records.size() && i < kShown; ++i)
    text += (i ? ", " : "") + records[i].id +
            (records[i].name.empty() ? "" : " \"" + records[i].name + "\"") + " (" +
            size_text(records[i].bytes()) + ")";
  return text;
}

}  // namespace

SnapshotHold::SnapshotHold(SnapshotRecord r, fs::path d, int lock_fd)
    : record(std::move(r)), directory(std::move(d)), lock_fd_(lock_fd) {}

SnapshotHold::SnapshotHold(SnapshotHold&& other) noexcept
    : record(std::move(other.record)),
      directory(std::move(other.directory)),
      lock_fd_(std::exchange(other.lock_fd_, -1)) {}

SnapshotHold& SnapshotHold::operator=(SnapshotHold&& other) noexcept {
  std::swap(record, other.record);
  std::swap(directory, other.directory);
  std::swap(lock_fd_, other.lock_fd_);
  return *this;
}

SnapshotHold::~SnapshotHold() {
  if (lock_fd_ >= 0) close(lock_fd_);
}

SnapshotStore::SnapshotStore(fs::path root, SnapshotLimits limits)
    : directory_(root / "snapshots"), limits_(limits) {}

void SnapshotStore::check(const SnapshotRecord& record, std::uint64_t bytes) const {
  auto own = list(record.principal);
  std::string yours = " Yours: " + titles(own) + ". Delete one with delete_snapshot.";
  for (const SnapshotRecord& other : own)
    if (!record.name.empty() && other.name == record.name)
      throw StoreError("You already have a snapshot named \"" + record.name +
                       "\". Choose another name, or delete it first with delete_snapshot.");
  if (own.size() >= limits_.per_principal)
    throw StoreError("You have " + std::to_string(own.size()) + " snapshots, as many as allowed." +
                     yours);
  if (bytes <= room()) return;
  throw StoreError("There is no room for it: snapshots take " + size_text(this->bytes()) + " of " +
                   size_text(limits_.disk) + ", and this one needs " + size_text(bytes) + "." +
                   (own.empty() ? std::string(" The operator can raise --disk.") : yours));
}

SnapshotHold SnapshotStore::begin(SnapshotRecord record) {
  make_private_directories(directory_.parent_path());
  make_private_directory(directory_);
  Deciding deciding(directory_);
  check(record, 1);
  fs::path directory = directory_ / ("." + record.id);
  make_private_directory(directory);
  int lock = open_lock(directory);
  SnapshotHold draft(std::move(record), directory, lock);
  if (!try_lock(lock)) throw StoreError("The snapshot's directory is already in use.");
  make_private_directory(draft.workspace());
  return draft;
}

void SnapshotStore::commit(SnapshotHold& draft) {
  write_json(draft.directory / kRecord, schemas::encode(draft.record));
  sync_all(draft.directory);
  Deciding deciding(directory_);
  check(draft.record, draft.record.bytes());
  fs::path path = directory_ / draft.record.id;
  if (rename(draft.directory.c_str(), path.c_str()) != 0) fail_on("write", path, errno);
  draft.directory = path;
  sync_names(directory_);
}

void SnapshotStore::discard(SnapshotHold draft) { remove_tree(draft.directory); }

std::optional<SnapshotHold> SnapshotStore::hold(const fs::path& directory, bool shared) const {
  int lock = ::open((directory / "lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (lock < 0) return std::nullopt;
  SnapshotHold held(SnapshotRecord(), directory, lock);
  if (!try_lock(lock, shared)) return std::nullopt;
  auto record = read_record(directory);  // it may have gone while we waited
  if (!record) return std::nullopt;
  held.record = std::move(*record);
  return held;
}

std::optional<SnapshotRecord> SnapshotStore::find(const std::string& principal,
                                                  const std::string& id_or_name) const {
  if (id_or_name.empty()) return std::nullopt;
  std::optional<SnapshotRecord> named;
  for (SnapshotRecord& record : list(principal)) {
    if (record.id == id_or_name) return std::move(record);
    if (record.name == id_or_name) named = std::move(record);
  }
  return named;
}

std::optional<SnapshotHold> SnapshotStore::open(const std::string& principal,
                                                const std::string& id_or_name) {
  auto record = find(principal, id_or_name);
  if (!record) return std::nullopt;
  return hold(directory_ / record->id, true);
}

SnapshotStore::Removal SnapshotStore::remove(const std::string& principal,
                                             const std::string& id_or_name) {
  auto record = find(principal, id_or_name);
  if (!record) return Removal::absent;
  return remove_directory(directory_ / record->id) ? Removal::removed : Removal::busy;
}

bool SnapshotStore::remove_directory(const fs::path& directory) {
  auto held = hold(directory, false);
  if (!held) return false;
  fs::path aside = directory_ / ("." + directory.filename().string());
  if (rename(directory.c_str(), aside.c_str()) != 0) fail_on("delete", directory, errno);
  remove_tree(aside);
  return true;
}

std::vector<SnapshotRecord> SnapshotStore::list(const std::optional<std::string>& principal) const {
  std::vector<SnapshotRecord> records;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(directory_, absent)) {
    if (!is_id(entry.path().filename())) continue;
    auto record = read_record(entry.path());
    bool wanted = record && (!principal || record->principal == *principal);
    if (wanted) records.push_back(std::move(*record));
  }
  std::ranges::sort(records, [](const auto& a, const auto& b) { return a.created > b.created; });
  return records;
}

std::uint64_t SnapshotStore::bytes() const {
  std::uint64_t total = 0;
  for (const SnapshotRecord& record : list(std::nullopt)) total += record.bytes();
  return total;
}

std::uint64_t SnapshotStore::room() const {
  std::uint64_t used = bytes();
  return used < limits_.disk ? limits_.disk - used : 0;
}

// Under a name with a dot, and nobody is at it: it will be nothing any more.
std::vector<fs::path> SnapshotStore::abandoned() const {
  std::vector<fs::path> found;
  std::error_code absent;
  if (!fs::exists(directory_, absent)) return found;
  Deciding deciding(directory_);  // else begin() might not have its lock yet
  for (const auto& entry : fs::directory_iterator(directory_, absent)) {
    if (!entry.path().filename().string().starts_with(".")) continue;
    int lock = ::open((entry.path() / "lock").c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    SnapshotHold held(SnapshotRecord(), entry.path(), lock);
    if (lock < 0 || flock(lock, LOCK_EX | LOCK_NB) == 0) found.push_back(entry.path());
  }
  return found;
}

std::vector<SnapshotRecord> SnapshotStore::made_before(std::int64_t oldest) const {
  auto records = list(std::nullopt);
  std::erase_if(records, [oldest](const auto& record) { return record.created >= oldest; });
  return records;
}

void SnapshotStore::sweep() {
  for (const fs::path& path : abandoned()) remove_tree(path);
}

}  // namespace sandbox
