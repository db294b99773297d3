#include "sandbox/history_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>

#include "sandbox/state_files.hpp"

namespace sandbox {

namespace fs = std::filesystem;

std::uint64_t append_history(const fs::path& file, std::string line) {
  line += '\n';
  int fd = open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) fail_on("write", file, errno);
  struct stat before {};
  int error = fstat(fd, &before) == 0 ? 0 : errno;
  ssize_t written = error ? 0 : write(fd, line.data(), line.size());
  if (written < 0) error = errno;
  bool is_cut = written >= 0 && written < static_cast<ssize_t>(line.size());
  if (!error && is_cut) error = ftruncate(fd, before.st_size) == 0 ? ENOSPC : errno;
  close(fd);
  if (error) fail_on("write", file, error);
  return static_cast<std::uint64_t>(before.st_size) + line.size();
}

std::vector<std::string> read_history(const fs::path& file) {
  std::vector<std::string> lines;
  std::ifstream in(file, std::ios::binary);
  for (std::string line; std::getline(in, line) && !in.eof();) lines.push_back(std::move(line));
  return lines;
}

std::uint64_t write_history(const fs::path& file, const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += line + '\n';
  write_whole(file, text);
  return text.size();
}

std::uint64_t copy_history(const fs::path& from, const fs::path& to) {
  std::error_code absent;
  if (!fs::exists(from, absent)) {
    fs::remove(to, absent);
    return 0;
  }
  return write_history(to, read_history(from));
}

}  // namespace sandbox
