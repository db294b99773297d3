#include "sandbox/state_files.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>

#include "sandbox/session_store.hpp"
#include "sandbox/tree_size.hpp"

namespace sandbox {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

constexpr std::uintmax_t kMaxRecord = 64 << 10;

void write_synced(const fs::path& path, const std::string& text) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) fail_on("write", path, errno);
  ssize_t written = write(fd, text.data(), text.size());
  int error = written < 0 ? errno : written != static_cast<ssize_t>(text.size()) ? ENOSPC : 0;
  if (!error && fsync(fd) != 0) error = errno;
  close(fd);
  if (!error) return;
  unlink(path.c_str());
  fail_on("write", path, error);
}

}  // namespace

[[noreturn]] void fail_on(const std::string& what, const fs::path& path, int error) {
  std::string advice;
  if (error == ENOSPC || error == EDQUOT) advice = " Free some space; nothing was changed.";
  if (error == EROFS || error == EACCES || error == EPERM)
    advice = " Make it writable for this user, or choose another place with --state-dir.";
  if (error == ENOTDIR || error == ENOENT || error == ELOOP || error == ENAMETOOLONG)
    advice = " Choose another place with --state-dir.";
  throw StoreError("Cannot " + what + " " + path.string() + ": " + std::strerror(error) + "." +
                   advice);
}

void make_private_directory(const fs::path& path) {
  if (mkdir(path.c_str(), 0700) == 0) return;
  if (errno != EEXIST) fail_on("create", path, errno);
  struct stat info;
  if (lstat(path.c_str(), &info) != 0) fail_on("use", path, errno);
  if (!S_ISDIR(info.st_mode)) fail_on("use", path, ENOTDIR);
  if (info.st_uid != geteuid())
    throw StoreError("The state directory " + path.string() +
                     " belongs to another user. Choose another place with --state-dir.");
}

void make_private_directories(const fs::path& path) {
  if (path.has_parent_path() && path != path.root_path() && !fs::exists(path.parent_path())) {
    std::error_code failed;
    fs::create_directories(path.parent_path(), failed);
    if (failed) fail_on("create", path.parent_path(), failed.value());
  }
  make_private_directory(path);
}

int open_lock(const fs::path& directory) {
  fs::path path = directory / "lock";
  int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) fail_on("open", path, errno);
  return fd;
}

// Who sweeps holds a lock for a moment to see whether anybody has it.
bool try_lock(int fd, bool shared) {
  constexpr int kAttempts = 5;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    if (attempt > 0) usleep(10'000);
    if (flock(fd, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB) == 0) return true;
  }
  return false;
}

void write_whole(const fs::path& path, const std::string& text) {
  fs::path aside = path;
  aside += ".new";
  write_synced(aside, text);
  if (rename(aside.c_str(), path.c_str()) != 0) fail_on("write", path, errno);
}

void write_json(const fs::path& path, const json::value& value) {
  write_whole(path, json::serialize(value) + "\n");
}

std::optional<json::value> read_json(const fs::path& path) {
  std::error_code absent;
  if (fs::file_size(path, absent) > kMaxRecord || absent) return std::nullopt;
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  boost::system::error_code malformed;
  json::value value = json::parse(text.str(), malformed);
  if (malformed) return std::nullopt;
  return value;
}

bool is_id(const std::string& text) {
  auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !text.empty() && text.size() <= 64 && std::ranges::all_of(text, fits);
}

std::string fingerprint(const fs::path& image) {
  std::vector<fs::path> files;
  std::error_code failed;
  for (const auto& entry : fs::recursive_directory_iterator(image, failed))
    if (entry.is_regular_file(failed)) files.push_back(entry.path());
  if (files.empty()) return {};
  std::ranges::sort(files);
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  auto add = [&hash](std::string_view bytes) {
    for (char byte : bytes) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  };
  for (const fs::path& path : files) {
    std::string head(4096, '\0');
    std::ifstream file(path, std::ios::binary);
    file.read(head.data(), static_cast<std::streamsize>(head.size()));
    head.resize(static_cast<std::size_t>(file.gcount()));
    add(path.filename().string() + " " + std::to_string(fs::file_size(path, failed)) + "\n");
    add(head);
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64, hash);
  return text;
}

std::uint64_t size_of(const fs::path& directory) {
  int fd = open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return 0;
  std::uint64_t size = tree_size(fd, std::numeric_limits<std::uint64_t>::max());
  close(fd);
  return size;
}

}  // namespace sandbox
