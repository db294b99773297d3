#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <sstream>

#include "sandbox/local/cgroup.hpp"
#include "sandbox/local/procfs.hpp"

namespace sandbox::local {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "pykeep-";

struct Mounted {
  fs::path root;  // the group that is visible at `point`
  fs::path point;
  std::string type;
  std::string options;
};

// /proc/self/mountinfo, proc(5): id parent dev root point options [optional...] - type source super
std::vector<Mounted> cgroup_mounts() {
  std::vector<Mounted> mounts;
  std::istringstream lines(read_proc_file("/proc/self/mountinfo"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string skip, root, point, type, options;
    fields >> skip >> skip >> skip >> root >> point;
    while (fields >> skip && skip != "-") {
    }
    fields >> type >> skip >> options;
    if (type == "cgroup" || type == "cgroup2") mounts.push_back({root, point, type, options});
  }
  return mounts;
}

bool has_word(const std::string& text, std::string_view word, char separator) {
  std::istringstream words(text);
  for (std::string next; std::getline(words, next, separator);)
    if (next == word) return true;
  return false;
}

// The group this server is in, as a path below the mount; empty if it is not visible there.
fs::path own_group(const Mounted& mount, const std::string& controller) {
  std::istringstream lines(read_proc_file("/proc/self/cgroup"));
  for (std::string line; std::getline(lines, line);) {
    std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == line.npos) continue;
    std::string controllers = line.substr(first + 1, second - first - 1);
    bool matches =
        controller.empty() ? controllers.empty() : has_word(controllers, controller, ',');
    if (!matches) continue;
    fs::path below = fs::path(line.substr(second + 1)).lexically_relative(mount.root);
    if (below.empty() || *below.begin() == "..") return {};
    return (mount.point / below).lexically_normal();
  }
  return {};
}

// "pykeep-PID-START": a later server can tell whether its owner still lives.
std::string own_name() {
  return std::string(kPrefix) + std::to_string(getpid()) + "-" +
         std::to_string(start_time(getpid()));
}

// A server killed in the few milliseconds in which bwrap has no death signal set yet leaves bwrap
// waiting. Held before it is looked at, so that the number cannot mean another process.
void end_members(const fs::path& group, const std::string& server) {
  std::istringstream pids(read_proc_file(group / "cgroup.procs"));
  for (pid_t pid = 0; pids >> pid;) {
    Fd held(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
    std::string groups = read_proc_file("/proc/" + std::to_string(pid) + "/cgroup");
    if (groups.find("/" + server + "/") != groups.npos) send_signal(held, SIGKILL);
  }
}

void sweep(const fs::path& parent) {
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, error)) {
    std::string name = entry.path().filename();
    pid_t pid = 0;
    std::uint64_t started = 0;
    if (!name.starts_with(kPrefix)) continue;
    const char* end = name.data() + name.size();
    auto [dash, bad] = std::from_chars(name.data() + kPrefix.size(), end, pid);
    if (bad != std::errc() || dash == end || *dash != '-') continue;
    std::from_chars(dash + 1, end, started);
    if (start_time(pid) == started) continue;
    for (const fs::directory_entry& group : fs::directory_iterator(entry.path(), error)) {
      if (!group.is_directory(error)) continue;
      end_members(group.path(), name);
      rmdir(group.path().c_str());  // only once it is empty; else the next server's turn
    }
    rmdir(entry.path().c_str());
  }
}

bool write_word(const fs::path& file, const std::string& word) {
  Fd fd(open(file.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && write(fd.get(), word.data(), word.size()) != -1;
}

// Makes our directory below `parent`; false where this server may not.
bool make_directory(const fs::path& parent, fs::path& directory) {
  if (parent.empty() || access((parent / "cgroup.procs").c_str(), W_OK) != 0) return false;
  directory = parent / own_name();
  if (mkdir(directory.c_str(), 0755) == -1 && errno != EEXIST) return false;
  sweep(parent);
  return true;
}

std::vector<Controller> enabled_in(const fs::path& group, const char* file) {
  std::vector<Controller> enabled;
  std::string text = read_proc_file(group / file);
  std::ranges::replace(text, '\n', ' ');
  for (Controller controller : kControllers)
    if (has_word(text, name_of(controller), ' ')) enabled.push_back(controller);
  return enabled;
}

// Version 2 shares controllers out only where no process is in the group itself ("no internal
// processes"). A service with Delegate=yes starts alone in its group: it moves one level down.
void share_controllers(const fs::path& group, bool is_own) {
  if (is_own && read_proc_file(group / "cgroup.procs") == std::to_string(getpid()) + "\n") {
    fs::path leaf = group / "pykeep-server";
    mkdir(leaf.c_str(), 0755);
    write_word(leaf / "cgroup.procs", std::to_string(getpid()));
  }
  for (Controller controller : enabled_in(group, "cgroup.controllers"))
    write_word(group / "cgroup.subtree_control", std::string("+") + name_of(controller));
}

// The groups go below the nearest ancestor that shares controllers out and that we may write to:
// under systemd, the service's own or the user's delegated app.slice.
void add_version_2(std::vector<Hierarchy>& all, const Mounted& mount) {
  const fs::path own = own_group(mount, "");
  for (fs::path group = own; !group.empty(); group = group.parent_path()) {
    share_controllers(group, group == own);
    std::vector<Controller> shared = enabled_in(group, "cgroup.subtree_control");
    Hierarchy hierarchy;
    if (!shared.empty() && make_directory(group, hierarchy.directory)) {
      for (Controller controller : shared)
        if (write_word(hierarchy.directory / "cgroup.subtree_control",
                       std::string("+") + name_of(controller)))
          hierarchy.controllers.push_back(controller);
      if (!hierarchy.controllers.empty()) {
        all.push_back(std::move(hierarchy));
        return;
      }
      rmdir(hierarchy.directory.c_str());
    }
    if (group == mount.point) return;
  }
}

void add_version_1(std::vector<Hierarchy>& all, const Mounted& mount) {
  Hierarchy hierarchy;
  hierarchy.version = 1;
  for (Controller controller : kControllers)
    if (has_word(mount.options, name_of(controller), ','))
      hierarchy.controllers.push_back(controller);
  if (hierarchy.controllers.empty()) return;
  fs::path group = own_group(mount, name_of(hierarchy.controllers.front()));
  if (make_directory(group, hierarchy.directory)) all.push_back(std::move(hierarchy));
}

// Removes our directories when the server ends in order; a killed one's are swept by the next.
struct Found {
  std::vector<Hierarchy> all;
  Found() {
    auto mounts = cgroup_mounts();
    for (const Mounted& mount : mounts)
      mount.type == "cgroup2" ? add_version_2(all, mount) : add_version_1(all, mount);
  }
  ~Found() {
    for (const Hierarchy& hierarchy : all) rmdir(hierarchy.directory.c_str());
  }
};

}  // namespace

const std::vector<Hierarchy>& hierarchies() {
  static const Found found;
  return found.all;
}

}  // namespace sandbox::local
