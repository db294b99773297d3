#include "sandbox/local/cgroup.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <system_error>

#include "sandbox/local/procfs.hpp"

namespace sandbox::local {

namespace {

namespace fs = std::filesystem;

// Of the server's 1024 (version 1) and 100 (version 2): under contention the server answers first.
constexpr const char* kShares = "256";
constexpr const char* kWeight = "25";

// Returns 0 or an errno.
int write_setting(const fs::path& file, std::string_view value) {
  Fd fd(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) return errno;
  return write(fd.get(), value.data(), value.size()) == -1 ? errno : 0;
}

std::uint64_t number_in(std::string_view text, std::string_view key = {}) {
  std::size_t at = 0;
  if (!key.empty()) {
    at = text.starts_with(key) ? 0 : text.find("\n" + std::string(key));
    if (at == text.npos) return 0;
    at = text.find(' ', at) + 1;
  }
  std::uint64_t value = 0;
  std::from_chars(text.data() + at, text.data() + text.size(), value);
  return value;
}

// Groups whose last process was still dying when they were to be removed.
std::vector<fs::path>& leftovers() {
  static std::vector<fs::path> list;
  return list;
}

void remove_leftovers() {
  std::erase_if(leftovers(),
                [](const fs::path& group) { return rmdir(group.c_str()) == 0 || errno == ENOENT; });
}

}  // namespace

const char* name_of(Controller controller) {
  constexpr const char* kNames[] = {"memory", "pids", "cpu"};
  return kNames[static_cast<int>(controller)];
}

Cgroup::Cgroup(const std::string& name, const Limits& limits) {
  remove_leftovers();
  static unsigned serial = 0;
  std::string unique = name + "-" + std::to_string(++serial);
  struct Setting {
    int version;
    Controller controller;
    const char* file;
    std::string value;
    bool required;
  };
  // bwrap's two own processes are in the group as well. Swap is forbidden where it is accounted.
  const Setting settings[] = {
      {2, Controller::memory, "memory.max", std::to_string(limits.memory), true},
      {2, Controller::memory, "memory.swap.max", "0", false},
      {2, Controller::pids, "pids.max", std::to_string(limits.processes + 2), true},
      {2, Controller::cpu, "cpu.weight", kWeight, true},
      {1, Controller::memory, "memory.swappiness", "0", false},
      {1, Controller::memory, "memory.limit_in_bytes", std::to_string(limits.memory), true},
      {1, Controller::memory, "memory.memsw.limit_in_bytes", std::to_string(limits.memory), false},
      {1, Controller::pids, "pids.max", std::to_string(limits.processes + 2), true},
      {1, Controller::cpu, "cpu.shares", kShares, true},
  };
  for (const Hierarchy& hierarchy : hierarchies()) {
    Group group{hierarchy.version, hierarchy.controllers, hierarchy.directory / unique};
    if (mkdir(group.directory.c_str(), 0755) == -1)
      throw StartError("cannot make the control group " + group.directory.string() + ": " +
                       std::generic_category().message(errno));
    groups_.push_back(group);
    for (const Setting& setting : settings) {
      if (setting.version != group.version ||
          std::ranges::count(group.controllers, setting.controller) == 0)
        continue;
      int error = write_setting(group.directory / setting.file, setting.value);
      if (!error || !setting.required) continue;
      for (const Group& made : groups_) rmdir(made.directory.c_str());
      throw StartError("cannot set " + (group.directory / setting.file).string() + ": " +
                       std::generic_category().message(error));
    }
  }
  if (const Group* group = with(Controller::memory)) {
    fs::path events =
        group->directory / (group->version == 2 ? "memory.events" : "memory.oom_control");
    memory_events_ = Fd(open(events.c_str(), O_RDONLY | O_CLOEXEC));
  }
}

Cgroup::~Cgroup() {
  for (Group& group : groups_) leftovers().push_back(std::move(group.directory));
  remove_leftovers();
}

void Cgroup::add(pid_t process) {
  for (const Group& group : groups_)
    if (int error = write_setting(group.directory / "cgroup.procs", std::to_string(process)))
      throw StartError("cannot put the sandbox into " + group.directory.string() + ": " +
                       std::generic_category().message(error));
}

const Cgroup::Group* Cgroup::with(Controller controller) const {
  for (const Group& group : groups_)
    if (std::ranges::count(group.controllers, controller)) return &group;
  return nullptr;
}

bool Cgroup::limits(Controller controller) const { return with(controller) != nullptr; }

// memory.oom.group stays off: the kernel kills the biggest process. When a child of a cell ate the
// memory, the session's variables survive it.
std::uint64_t Cgroup::memory_kills() const {
  char text[1024];
  ssize_t size = memory_events_ ? pread(memory_events_.get(), text, sizeof text, 0) : 0;
  return size > 0 ? number_in({text, static_cast<std::size_t>(size)}, "oom_kill ") : 0;
}

std::uint64_t Cgroup::memory() const {
  const Group* group = with(Controller::memory);
  if (!group) return 0;
  const char* file = group->version == 2 ? "memory.current" : "memory.usage_in_bytes";
  return number_in(read_proc_file(group->directory / file));
}

std::uint64_t Cgroup::memory_peak() const {
  const Group* group = with(Controller::memory);
  if (!group) return 0;
  const char* file = group->version == 2 ? "memory.peak" : "memory.max_usage_in_bytes";
  return number_in(read_proc_file(group->directory / file));
}

}  // namespace sandbox::local
