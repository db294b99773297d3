#include "sandbox/copy_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <memory>

#include "schemas/utf8.hpp"

namespace sandbox {

namespace {

constexpr int kMaxDepth = 100;
constexpr std::size_t kMaxNamed = 10;
constexpr std::size_t kShownPath = 100;
constexpr std::uint64_t kLeast = 4096;  // what an empty file counts: inodes are limited too

// An open descriptor; -1: none.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  File(File&& other) noexcept : fd_(other.release()) {}
  File& operator=(File&&) = delete;
  ~File() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_;
};

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

// The names in a directory; empty, with errno set, when it cannot be read.
std::vector<std::string> names_in(int parent) {
  std::vector<std::string> names;
  File again(openat(parent, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  Directory directory(again ? fdopendir(again.get()) : nullptr);
  if (!directory) return names;
  again.release();
  while (const dirent* entry = readdir(directory.get())) {
    std::string name(entry->d_name);
    if (name != "." && name != "..") names.push_back(std::move(name));
  }
  return names;
}

std::string shown(const std::string& path) {
  std::string text = path.substr(0, kShownPath);
  for (std::size_t at = 0; at < text.size();) {
    std::size_t length = schemas::utf8_sequence(std::string_view(text).substr(at));
    bool plain = length > 1 || (length == 1 && static_cast<unsigned char>(text[at]) >= 0x20);
    if (!plain) text[at] = '?';
    at += std::max<std::size_t>(length, 1);
  }
  return text.size() < path.size() ? text + "..." : text;
}

class Copier {
 public:
  Copier(int to, std::uint64_t cap) : cap_(cap) {
    struct stat status {};
    if (fstat(to, &status) == 0) owner_ = status.st_uid;
    changes_owner_ = geteuid() == 0;
  }

  void directory(int from, int to, const std::string& path, int depth) {
    for (const std::string& name : names_in(from)) entry(from, to, name, path + name, depth);
  }

  CopyReport report() {
    if (unnamed_ > 0) report_.skipped.push_back(std::to_string(unnamed_) + " more");
    return std::move(report_);
  }

 private:
  void entry(int from, int to, const std::string& name, const std::string& path, int depth) {
    struct stat status {};
    if (fstatat(from, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == -1) return;  // gone meanwhile
    if (S_ISREG(status.st_mode)) return file(from, to, name, path);
    if (S_ISLNK(status.st_mode)) return link(from, to, name, path);
    if (!S_ISDIR(status.st_mode)) return skip(path, "not a file");
    if (depth == kMaxDepth) return skip(path, "nested too deeply");
    File source(openat(from, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!source) return skip(path, std::strerror(errno));
    if (mkdirat(to, name.c_str(), 0700) == -1) fail(path);
    File made(openat(to, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!made) fail(path);
    count(kLeast);
    directory(source.get(), made.get(), path + "/", depth + 1);
    finish(made.get(), status, path);
  }

  void file(int from, int to, const std::string& name, const std::string& path) {
    // Not blocking: it may have become a pipe meanwhile.
    File source(openat(from, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status {};
    if (!source || fstat(source.get(), &status) == -1) return skip(path, std::strerror(errno));
    if (!S_ISREG(status.st_mode)) return skip(path, "not a file");
    count(std::max(kLeast, static_cast<std::uint64_t>(status.st_blocks) * 512));
    File made(openat(to, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!made) fail(path);
    if (ioctl(made.get(), FICLONE, source.get()) == -1)
      copy_data(source.get(), made.get(), status.st_size, path);
    finish(made.get(), status, path);
  }

  // Data only, up to the size it had: a file that grows faster than we copy must not hold us.
  void copy_data(int source, int made, off_t size, const std::string& path) {
    if (ftruncate(made, size) == -1) fail(path);
    for (off_t at = 0; at < size;) {
      off_t data = lseek(source, at, SEEK_DATA);
      if (data == -1 || data >= size) return;  // nothing but a hole
      off_t hole = lseek(source, data, SEEK_HOLE);
      off_t end = hole == -1 ? size : std::min(hole, size);
      at = data;
      while (at < end) {
        loff_t in = at, out = at;
        ssize_t copied =
            copy_file_range(source, &in, made, &out, static_cast<std::size_t>(end - at), 0);
        if (copied == -1 && errno == EINTR) continue;
        if (copied == -1) fail(path);
        if (copied == 0) return;  // cut short meanwhile
        at += copied;
      }
    }
  }

  void link(int from, int to, const std::string& name, const std::string& path) {
    std::string target(PATH_MAX, '\0');
    ssize_t length = readlinkat(from, name.c_str(), target.data(), target.size());
    if (length <= 0) return skip(path, "its target cannot be read");
    target.resize(static_cast<std::size_t>(length));
    count(kLeast);
    if (symlinkat(target.c_str(), to, name.c_str()) == -1) fail(path);
    if (changes_owner_ && fchownat(to, name.c_str(), owner_, owner_, AT_SYMLINK_NOFOLLOW) == -1)
      fail(path);
  }

  void finish(int made, const struct stat& like, const std::string& path) {
    if (changes_owner_ && fchown(made, owner_, owner_) == -1) fail(path);
    if (fchmod(made, like.st_mode & 0777) == -1) fail(path);
    timespec times[] = {like.st_atim, like.st_mtim};
    futimens(made, times);
  }

  void count(std::uint64_t bytes) {
    report_.bytes += bytes;
    if (report_.bytes > cap_)
      throw CopyError("The files in /workspace take more than there is room for.");
  }

  void skip(const std::string& path, const std::string& why) {
    if (report_.skipped.size() < kMaxNamed)
      report_.skipped.push_back(shown(path) + ": " + why);
    else
      ++unnamed_;
  }

  [[noreturn]] void fail(const std::string& path) {
    throw CopyError("/workspace/" + shown(path) + " cannot be copied: " + std::strerror(errno) +
                    ".");
  }

  std::uint64_t cap_;
  uid_t owner_ = 0;
  bool changes_owner_ = false;
  CopyReport report_;
  std::size_t unnamed_ = 0;
};

File open_top(const std::filesystem::path& path) {
  File top(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!top) throw CopyError("Cannot open " + path.string() + ": " + std::strerror(errno) + ".");
  return top;
}

}  // namespace

CopyReport copy_tree(const std::filesystem::path& from, const std::filesystem::path& to,
                     std::uint64_t cap) {
  File source = open_top(from), made = open_top(to);
  Copier copier(made.get(), cap);
  copier.directory(source.get(), made.get(), "", 0);
  return copier.report();
}

}  // namespace sandbox
