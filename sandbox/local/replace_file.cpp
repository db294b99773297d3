#include "sandbox/local/replace_file.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "sandbox/local/beneath.hpp"

namespace sandbox::local {

namespace {

constexpr std::string_view kPrefix = ".pykeep-";
constexpr std::string_view kSuffix = ".part";
constexpr std::size_t kChunk = 1 << 20;

std::string unfinished_name() {
  std::uint64_t random = 0;
  (void)!getrandom(&random, sizeof random, 0);  // O_EXCL decides; this only avoids collisions
  return std::string(kPrefix) + std::to_string(random) + std::string(kSuffix);
}

void give_to(const Fd& fd, const std::string& path, std::optional<uid_t> owner, mode_t mode) {
  if (owner && fchown(fd.get(), *owner, *owner) == -1) fail(path, errno);
  if (fchmod(fd.get(), mode) == -1) fail(path, errno);
}

// The directory at `path`, made if it is not there, with all that lead to it.
Fd make_directories(int root, const std::string& path, std::optional<uid_t> owner) {
  bool missing = false;
  Fd found = open_beneath(root, path, O_RDONLY | O_DIRECTORY, &missing);
  if (!missing) return found;
  std::size_t slash = path.rfind('/');
  std::string above = slash == path.npos ? "." : path.substr(0, slash);
  Fd parent = make_directories(root, above, owner);
  std::string name = slash == path.npos ? path : path.substr(slash + 1);
  bool made = mkdirat(parent.get(), name.c_str(), 0700) == 0;
  if (!made && errno != EEXIST) fail(path, errno);
  Fd directory = open_beneath(root, path, O_RDONLY | O_DIRECTORY);
  if (made) give_to(directory, path, owner, 0755);
  return directory;
}

}  // namespace

Replacement::Replacement(int root, std::string path, std::optional<uid_t> owner)
    : path_(std::move(path)) {
  if (path_ == ".") fail("/workspace", EISDIR);
  std::size_t slash = path_.rfind('/');
  name_ = slash == path_.npos ? path_ : path_.substr(slash + 1);
  directory_ = make_directories(root, slash == path_.npos ? "." : path_.substr(0, slash), owner);

  bool missing = false;
  Fd old = open_beneath(root, path_, O_PATH | O_NOFOLLOW, &missing);
  if (!missing) {
    mode_t type = status_of(old, path_).st_mode & S_IFMT;
    if (type == S_IFDIR) fail(path_, EISDIR);
    if (type == S_IFLNK) fail(path_, ELOOP);
  }
  open_unfinished();
  give_to(file_, path_, owner, 0644);
}

Replacement::~Replacement() {
  if (named_) unlinkat(directory_.get(), unfinished_.c_str(), 0);
}

// A file without a name as long as it is written, where the file system has such: a server that is
// killed meanwhile leaves nothing behind.
void Replacement::open_unfinished() {
  unfinished_ = unfinished_name();
  file_ = Fd(openat(directory_.get(), ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600));
  if (file_) return;
  file_ = Fd(openat(directory_.get(), unfinished_.c_str(),
                    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_) fail(path_, errno);
  named_ = true;
}

void Replacement::write(std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t size = ::write(file_.get(), bytes.data(), bytes.size());
    if (size == -1 && errno == EINTR) continue;
    if (size == -1) fail(path_, errno);
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
}

void Replacement::finish() {
  if (!named_) give_name();
  int directory = directory_.get();
  if (renameat(directory, unfinished_.c_str(), directory, name_.c_str()) == -1) fail(path_, errno);
  named_ = false;
}

// linkat(2) alone cannot replace a file, so it gets the unfinished one's name first.
void Replacement::give_name() {
  std::string unnamed = "/proc/self/fd/" + std::to_string(file_.get());
  if (linkat(AT_FDCWD, unnamed.c_str(), directory_.get(), unfinished_.c_str(), AT_SYMLINK_FOLLOW) ==
      -1)
    fail(path_, errno);
  named_ = true;
}

Content from_memory(std::string_view bytes) {
  return [bytes](const auto& write) { write(bytes); };
}

Content from_file(int fd, std::uint64_t cap) {
  return [fd, cap](const auto& write) {
    std::vector<char> buffer(kChunk);
    for (std::uint64_t done = 0;;) {
      ssize_t size = pread(fd, buffer.data(), buffer.size(), static_cast<off_t>(done));
      if (size == -1 && errno == EINTR) continue;
      if (size == -1) fail("the file to upload", errno);
      if (size == 0) return;
      done += static_cast<std::uint64_t>(size);
      if (done > cap)
        throw FileError("the file is larger than the limit of " + std::to_string(cap) +
                        " bytes; nothing was changed in the workspace");
      write(std::string_view(buffer.data(), static_cast<std::size_t>(size)));
    }
  };
}

void replace_file(int root, const std::string& path, std::optional<uid_t> owner,
                  const Content& content) {
  Replacement replacement(root, path, owner);
  content([&replacement](std::string_view bytes) { replacement.write(bytes); });
  replacement.finish();
}

bool is_unfinished(std::string_view name) {
  return name.starts_with(kPrefix) && name.ends_with(kSuffix);
}

}  // namespace sandbox::local
