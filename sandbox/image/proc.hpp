#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sandbox::image {

// A closed-on-destruction descriptor.
class Handle {
 public:
  Handle() = default;
  explicit Handle(int fd) : fd_(fd) {}
  Handle(Handle&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Handle& operator=(Handle&& other) noexcept;
  ~Handle();
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// "WHAT: the system's words". Throws FreezeError.
[[noreturn]] void refuse(const std::string& what);
[[noreturn]] void refuse_errno(const std::string& what);

// Everything below was formatted by the kernel, but describes what the process did.

std::string proc_path(pid_t pid, std::string_view rest);  // "/proc/PID/rest"
// At most 64 MiB. nullopt if it cannot be opened.
std::optional<std::string> read_proc(const std::string& path);
// Where a link of /proc points, as text; empty if it cannot be read. Never followed.
std::string read_link(const std::string& path);
// The entries of a directory of /proc that are numbers, ascending.
std::vector<int> list_numbers(const std::string& directory);
std::vector<std::string_view> split_lines(std::string_view text);
std::vector<std::string_view> split_words(std::string_view text);
// 0 where it is no number.
std::uint64_t parse_number(std::string_view text, int base = 10);
// Of "Name:\tvalue" lines; empty if absent.
std::string_view field(std::string_view text, std::string_view name);

}  // namespace sandbox::image
