#include "sandbox/image/proc.hpp"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "sandbox/sandbox.hpp"

namespace sandbox::image {

namespace {

constexpr std::size_t kMaxProcFile = 64 << 20;

}  // namespace

Handle& Handle::operator=(Handle&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

Handle::~Handle() {
  if (fd_ >= 0) close(fd_);
}

void refuse(const std::string& what) { throw FreezeError(what); }

void refuse_errno(const std::string& what) {
  throw FreezeError(what + ": " + std::generic_category().message(errno));
}

std::string proc_path(pid_t pid, std::string_view rest) {
  return "/proc/" + std::to_string(pid) + "/" + std::string(rest);
}

std::optional<std::string> read_proc(const std::string& path) {
  Handle file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return std::nullopt;
  std::string text;
  for (;;) {
    std::size_t size = text.size();
    text.resize(size + (64 << 10));
    ssize_t part = read(file.get(), text.data() + size, text.size() - size);
    if (part == -1 && errno == EINTR) part = 0;
    text.resize(size + static_cast<std::size_t>(part > 0 ? part : 0));
    if (part <= 0) return text;
    if (text.size() > kMaxProcFile) return std::nullopt;
  }
}

std::string read_link(const std::string& path) {
  char target[PATH_MAX];
  ssize_t size = readlink(path.c_str(), target, sizeof target);
  if (size <= 0 || size == sizeof target) return {};
  return {target, static_cast<std::size_t>(size)};
}

std::vector<int> list_numbers(const std::string& directory) {
  std::vector<int> numbers;
  std::error_code gone;
  for (std::filesystem::directory_iterator entry(directory, gone), end; !gone && entry != end;
       entry.increment(gone))
    numbers.push_back(static_cast<int>(parse_number(entry->path().filename().native())));
  std::ranges::sort(numbers);
  return numbers;
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
  }
  return lines;
}

std::vector<std::string_view> split_words(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n";
  std::vector<std::string_view> words;
  for (;;) {
    std::size_t start = text.find_first_not_of(kSpace);
    if (start == text.npos) return words;
    text.remove_prefix(start);
    std::size_t end = text.find_first_of(kSpace);
    words.push_back(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end);
  }
}

std::uint64_t parse_number(std::string_view text, int base) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, base);
  return value;
}

std::string_view field(std::string_view text, std::string_view name) {
  for (std::string_view line : split_lines(text)) {
    if (!line.starts_with(name) || line.size() <= name.size() || line[name.size()] != ':') continue;
    line.remove_prefix(name.size() + 1);
    std::size_t start = line.find_first_not_of(" \t");
    return start == line.npos ? std::string_view() : line.substr(start);
  }
  return {};
}

}  // namespace sandbox::image
