#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace tools {

// An open file of this machine.
class HostFile {
 public:
  HostFile() = default;
  explicit HostFile(int fd) : fd_(fd) {}
  HostFile(HostFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  HostFile& operator=(HostFile&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~HostFile();
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

// Opens a regular file below one of the roots for reading; a relative path is taken below each in
// turn. Links are followed as long as they stay below the root (openat2, RESOLVE_BENEATH). Throws
// mcp::ToolError that names the roots. Blocks for a few system calls.
HostFile open_host_file(const std::vector<std::filesystem::path>& roots, const std::string& path);

}  // namespace tools
