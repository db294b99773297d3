#include "client_config/config_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace client_config {

namespace fs = std::filesystem;

namespace {

constexpr off_t kMaxSize = 8 << 20;
constexpr int kMaxLinks = 40;  // as the kernel's

[[noreturn]] void fail(const std::string& what, const fs::path& path, int error) {
  throw std::runtime_error("cannot " + what + " " + path.string() + ": " + std::strerror(error));
}

// Also where the last link leads to nothing yet: there the file is to be.
fs::path followed(fs::path path) {
  for (int i = 0; i < kMaxLinks && fs::is_symlink(path); ++i)
    path = path.parent_path() / fs::read_symlink(path);
  if (fs::is_symlink(path)) fail("follow", path, ELOOP);
  return path;
}

std::optional<std::string> read(const fs::path& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0) {
    if (errno == ENOENT) return std::nullopt;
    fail("read", path, errno);
  }
  if (!S_ISREG(info.st_mode)) throw std::runtime_error(path.string() + " is not a file");
  if (info.st_size > kMaxSize)
    throw std::runtime_error(path.string() + " is too large for a configuration");
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("read", path, errno);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// All of these: errno, or 0.
int write_all(int fd, const std::string& text) {
  std::size_t done = 0;
  while (done < text.size()) {
    ssize_t size = write(fd, text.data() + done, text.size() - done);
    if (size < 0 && errno != EINTR) return errno;
    if (size > 0) done += static_cast<std::size_t>(size);
  }
  return fsync(fd) == 0 ? 0 : errno;
}

// Mode and owner of the file `like`; a new file's if that is not there.
int dress(int fd, const fs::path& like) {
  mode_t mask = umask(0);
  umask(mask);
  struct stat info;
  bool exists = stat(like.c_str(), &info) == 0;
  if (exists && fchown(fd, info.st_uid, info.st_gid) != 0) return errno;
  return fchmod(fd, exists ? info.st_mode & 07777 : 0666 & ~mask) == 0 ? 0 : errno;
}

void write_whole(const fs::path& path, const std::string& text, const fs::path& like) {
  std::string aside = path.string() + ".XXXXXX";
  int fd = mkostemp(aside.data(), O_CLOEXEC);
  if (fd < 0) fail("write", path, errno);
  int error = dress(fd, like);
  if (!error) error = write_all(fd, text);
  close(fd);
  if (!error && rename(aside.c_str(), path.c_str()) != 0) error = errno;
  if (!error) return;
  unlink(aside.c_str());
  fail("write", path, error);
}

// The directory, since the file itself is replaced. -1: there is none yet, or none for us to read.
int locked(const fs::path& directory) {
  constexpr int kAttempts = 100;
  int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0 && i < kAttempts; ++i)
    usleep(50'000);
  return fd;
}

}  // namespace

ConfigFile::ConfigFile(const fs::path& path) : path_(followed(fs::absolute(path))) {
  directory_ = locked(path_.parent_path());
  text_ = read(path_);
}

ConfigFile::~ConfigFile() {
  if (directory_ >= 0) close(directory_);
}

fs::path ConfigFile::backup_path() const { return path_.string() + ".pykeep-backup"; }

std::optional<std::string> ConfigFile::backup() const { return read(backup_path()); }

void ConfigFile::back_up() const {
  if (text_) write_whole(backup_path(), *text_, path_);
}

void ConfigFile::replace(const std::string& text) const {
  std::error_code failed;
  fs::create_directories(path_.parent_path(), failed);
  if (failed) fail("make", path_.parent_path(), failed.value());
  check_unchanged();
  write_whole(path_, text, path_);
}

void ConfigFile::check_unchanged() const {
  if (read(path_) != text_)
    throw std::runtime_error(path_.string() +
                             " was changed by another program just now. It is left as it is; "
                             "try again");
}

void ConfigFile::remove() const {
  check_unchanged();
  if (unlink(path_.c_str()) != 0) fail("delete", path_, errno);
}

void ConfigFile::remove_backup() const { unlink(backup_path().c_str()); }

}  // namespace client_config
