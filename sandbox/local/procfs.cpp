#include "sandbox/local/procfs.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <memory>
#include <sstream>

namespace sandbox::local {

namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

std::string proc_path(pid_t process, const char* file) {
  return "/proc/" + std::to_string(process) + "/" + file;
}

bool is_member(pid_t process, ino_t pid_namespace) {
  struct stat status {};
  return stat(proc_path(process, "ns/pid").c_str(), &status) == 0 && status.st_ino == pid_namespace;
}

// The last number on the line of /proc/PID/status that starts with `key`; 0 if there is none.
std::uint64_t status_number(const std::string& status, const std::string& key, bool last) {
  std::size_t at = status.find("\n" + key + ":");
  if (at == status.npos) return 0;
  std::istringstream line(status.substr(at + key.size() + 2, 200));
  std::string first_line;
  std::getline(line, first_line);
  std::istringstream numbers(first_line);
  std::uint64_t value = 0;
  for (std::uint64_t next = 0; numbers >> next;) {
    value = next;
    if (!last) break;
  }
  return value;
}

// The fields of /proc/PID/stat from the third on: the second is a name that may hold anything.
std::vector<std::string> stat_fields(pid_t process) {
  std::string text = read_proc_file(proc_path(process, "stat"));
  std::size_t name_end = text.rfind(')');
  std::vector<std::string> fields;
  if (name_end == text.npos) return fields;
  std::istringstream rest(text.substr(name_end + 1));
  for (std::string field; rest >> field;) fields.push_back(field);
  return fields;
}

std::uint64_t to_number(const std::vector<std::string>& fields, int field) {
  auto index = static_cast<std::size_t>(field - 3);
  std::uint64_t value = 0;
  if (index < fields.size())
    std::from_chars(fields[index].data(), fields[index].data() + fields[index].size(), value);
  return value;
}

}  // namespace

std::string read_proc_file(const std::filesystem::path& file) {
  std::string text;
  Fd fd(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) return text;
  char buffer[4096];
  for (;;) {
    ssize_t size = read(fd.get(), buffer, sizeof buffer);
    if (size == -1 && errno == EINTR) continue;
    if (size <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(size));
  }
}

std::uint64_t start_time(pid_t process) { return to_number(stat_fields(process), 22); }

std::vector<Member> members_of(ino_t pid_namespace) {
  std::vector<Member> members;
  std::unique_ptr<DIR, CloseDirectory> proc(opendir("/proc"));
  if (!proc) return members;
  while (const dirent* entry = readdir(proc.get())) {
    pid_t pid = 0;
    std::string_view name(entry->d_name);
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    if (!is_member(pid, pid_namespace)) continue;
    std::string status = read_proc_file(proc_path(pid, "status"));
    auto inner = static_cast<pid_t>(status_number(status, "NSpid", true));
    if (inner) members.push_back({pid, inner});
  }
  return members;
}

Fd hold_member(pid_t process, ino_t pid_namespace) {
  // Opened first and checked after: from then on the number cannot mean another process.
  Fd held(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
  if (held && !is_member(process, pid_namespace)) return {};
  return held;
}

void send_signal(const Fd& pidfd, int signal) {
  if (pidfd) syscall(SYS_pidfd_send_signal, pidfd.get(), signal, nullptr, 0);
}

Consumption consumption_of(pid_t process) {
  Consumption consumption;
  std::string status = read_proc_file(proc_path(process, "status"));
  consumption.memory =
      1024 * (status_number(status, "RssAnon", false) + status_number(status, "RssShmem", false));
  consumption.threads = status_number(status, "Threads", false);
  auto fields = stat_fields(process);
  std::uint64_t ticks = 0;
  for (int field = 14; field <= 17; ++field) ticks += to_number(fields, field);
  consumption.cpu_seconds = static_cast<double>(ticks) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return consumption;
}

}  // namespace sandbox::local
