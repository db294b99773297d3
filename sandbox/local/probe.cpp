#include "sandbox/local/probe.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "sandbox/local/beneath.hpp"
#include "sandbox/local/bubblewrap.hpp"
#include "sandbox/local/cgroup.hpp"
#include "sandbox/local/ids.hpp"
#include "sandbox/local/procfs.hpp"
#include "sandbox/local/trial.hpp"

namespace sandbox::local {

namespace {

namespace fs = std::filesystem;

constexpr const char* kNamespaces[] = {"user", "pid", "mnt", "net", "ipc", "uts", "cgroup"};

// Says what it is in, then forks more than it may.
constexpr const char* kLookAround =
    "for n in user pid mnt net ipc uts cgroup; do readlink /proc/self/ns/$n; done\n"
    "cat /proc/self/status\n"
    "i=0; while [ $i -lt 40 ]; do sleep 3 & i=$((i+1)); done; echo forked all\n";
constexpr std::uint64_t kFewProcesses = 16;

// Memory that belongs to no process, so that only a limit on all of them together can find it.
constexpr const char* kFillMemory = "exec head -c 100663296 /dev/zero >/dev/shm/fill";
constexpr std::uint64_t kLittleMemory = 48 << 20;

Layer layer(std::string name, bool achieved, std::string detail, std::string remedy = {}) {
  Layer result;
  result.name = std::move(name);
  result.state = achieved ? Layer::State::achieved : Layer::State::absent;
  result.detail = std::move(detail);
  if (!achieved) result.remedy = std::move(remedy);
  return result;
}

// The word that follows `key` in /proc/PID/status.
std::string status_word(const std::string& status, const std::string& key) {
  std::size_t at = status.find("\n" + key + ":\t");
  if (at == status.npos) return {};
  at += key.size() + 3;
  return status.substr(at, status.find_first_of("\n\t ", at) - at);
}

void add_namespaces(std::vector<Layer>& layers, const std::string& seen) {
  for (const char* name : kNamespaces) {
    std::error_code error;
    std::string own = fs::read_symlink(std::string("/proc/self/ns/") + name, error);
    std::string word = std::string(name) + ":[";
    bool there = seen.find(word) != seen.npos;
    bool separate = there && (own.empty() || seen.find(own + "\n") == seen.npos);
    layers.push_back(layer(std::string(name) + " namespace", separate,
                           separate ? "its own" : "shared with this machine",
                           namespace_remedy("/proc/sys")));
  }
}

void add_privileges(std::vector<Layer>& layers, const std::string& seen) {
  bool none = true;
  for (const char* set : {"CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"})
    none = none && status_word(seen, set) == "0000000000000000";
  const char* report = "Please report this: bubblewrap should have done it.";
  layers.push_back(layer("capabilities", none, none ? "none, and none to be had" : "some", report));
  layers.push_back(layer("no new privileges", status_word(seen, "NoNewPrivs") == "1",
                         "set-user-id programs give nothing", report));
  bool filtered = status_word(seen, "Seccomp") == "2";
  layers.push_back(layer("system call filter", filtered, filtered ? "seccomp" : "none",
                         "The kernel needs CONFIG_SECCOMP_FILTER."));
}

void add_user(std::vector<Layer>& layers, const fs::path& scratch) {
  if (geteuid() != 0) {
    layers.push_back(layer("unprivileged user", true, "this server's own, which is not root"));
    return;
  }
  std::optional<uid_t> owner = workspace_owner(scratch);
  layers.push_back(layer("unprivileged user", owner.has_value(),
                         owner ? "user " + std::to_string(*owner) + ", one for each workspace" : "",
                         "Run pykeep as an ordinary user."));
}

void add_processes(std::vector<Layer>& layers, const Trial& trial) {
  bool by_group = std::ranges::any_of(hierarchies(), [](const Hierarchy& hierarchy) {
    return std::ranges::count(hierarchy.controllers, Controller::pids) != 0;
  });
  bool stopped = trial.out.find("forked all") == std::string::npos;
  layers.push_back(layer("process limit", stopped, by_group ? "control group" : "RLIMIT_NPROC",
                         "Linux 5.14 or newer, or a delegated control group, is needed."));
}

void add_memory(std::vector<Layer>& layers, const SandboxSpec& spec) {
  const char* delegate =
      "For an exact limit start it where control groups are delegated: `systemd-run --user --scope "
      "-p "
      "Delegate=yes pykeep`, or Delegate=yes in its service.";
  auto found = std::ranges::find_if(hierarchies(), [](const Hierarchy& hierarchy) {
    return std::ranges::count(hierarchy.controllers, Controller::memory) != 0;
  });
  if (found == hierarchies().end()) {
    Layer weaker = layer("memory limit", true,
                         "each process by RLIMIT_DATA, all together by looking 5 times a second");
    weaker.state = Layer::State::weaker;
    weaker.remedy = delegate;
    layers.push_back(weaker);
    return;
  }
  SandboxSpec little = spec;
  little.limits.memory = kLittleMemory;
  Trial trial = try_script(little, kFillMemory);
  layers.push_back(layer("memory limit", trial.memory_kills > 0,
                         "control group version " + std::to_string(found->version) + ", " +
                             found->directory.parent_path().string() + trial.failure,
                         delegate));
}

void add_processor(std::vector<Layer>& layers) {
  bool by_group = std::ranges::any_of(hierarchies(), [](const Hierarchy& hierarchy) {
    return std::ranges::count(hierarchy.controllers, Controller::cpu) != 0;
  });
  Layer share =
      layer("processor share", true,
            by_group ? "control group, below the server's" : "by niceness, below the server's");
  share.required = false;
  layers.push_back(share);
}

void add_files(std::vector<Layer>& layers, const fs::path& scratch) {
  bool works = false;
  std::string detail = "openat2";
  try {
    Fd directory(open(scratch.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    works = static_cast<bool>(open_beneath(directory.get(), ".", O_RDONLY | O_DIRECTORY));
  } catch (const FileError& error) {
    detail += std::string(": ") + error.what();
  }
  layers.push_back(layer("file access that follows no links", works, detail,
                         "Linux 5.6 or newer is needed; a container must not forbid openat2."));
}

// "bubblewrap 0.8.0"
std::string version_of(const std::string& bwrap) {
  std::string text(100, '\0');
  FILE* pipe = popen((bwrap + " --version").c_str(), "re");  // one of our own constant paths
  if (!pipe) return "version unknown";
  text.resize(fread(text.data(), 1, text.size(), pipe));
  pclose(pipe);
  return text.substr(0, text.find('\n'));
}

void add_bubblewrap(std::vector<Layer>& layers) {
  try {
    std::string path = find_bubblewrap();
    layers.push_back(layer("bubblewrap", true, path + ", " + version_of(path)));
  } catch (const StartError& error) {
    layers.push_back(layer("bubblewrap", false, "not found", error.what()));
  }
}

void add_all(std::vector<Layer>& layers, const fs::path& scratch) {
  add_bubblewrap(layers);
  if (layers.back().state == Layer::State::absent) return;
  SandboxSpec spec;
  spec.name = "probe";
  spec.workspace = scratch;
  spec.limits.processes = kFewProcesses;
  Trial trial = try_script(spec, kLookAround);
  if (!trial.failure.empty()) {
    // Before bwrap ran it was something else, and the failure says what to do about it.
    bool by_bwrap = trial.failure.find("bwrap") != std::string::npos;
    layers.push_back(layer("sandbox", false, trial.failure,
                           by_bwrap ? namespace_remedy("/proc/sys") : std::string()));
    return;
  }
  add_namespaces(layers, trial.out);
  add_privileges(layers, trial.out);
  add_user(layers, scratch);
  add_processes(layers, trial);
  add_memory(layers, spec);
  add_processor(layers);
  add_files(layers, scratch);
}

}  // namespace

std::vector<Layer> probe_layers(const fs::path& scratch) {
  std::vector<Layer> layers;
  std::string name = (scratch / "probe-XXXXXX").string();
  if (!mkdtemp(name.data())) {
    layers.push_back(layer("scratch directory", false, std::generic_category().message(errno),
                           "Make " + scratch.string() +
                               " a writable directory, or choose another place with --state-dir."));
    return layers;
  }
  try {
    add_all(layers, name);
  } catch (const std::exception& error) {
    layers.push_back(layer("sandbox", false, error.what()));
  }
  std::error_code ignored;
  fs::remove_all(name, ignored);
  return layers;
}

std::string namespace_remedy(const fs::path& proc_sys) {
  auto value = [&](const char* file) { return read_proc_file(proc_sys / file); };
  if (value("user/max_user_namespaces") == "0\n")
    return "User namespaces are turned off: `sudo sysctl -w user.max_user_namespaces=15000` (and a "
           "line in /etc/sysctl.d/ to keep it).";
  if (value("kernel/unprivileged_userns_clone") == "0\n")
    return "User namespaces are kept from ordinary users: `sudo sysctl -w "
           "kernel.unprivileged_userns_clone=1` (and a line in /etc/sysctl.d/ to keep it).";
  if (value("kernel/apparmor_restrict_unprivileged_userns") == "1\n")
    return "AppArmor keeps bwrap from using user namespaces. Allow it with this profile:\n"
           "  sudo tee /etc/apparmor.d/bwrap >/dev/null <<'EOF'\n"
           "  abi <abi/4.0>,\n"
           "  include <tunables/global>\n"
           "  profile bwrap /usr/bin/bwrap flags=(unconfined) {\n"
           "    userns,\n"
           "    include if exists <local/bwrap>\n"
           "  }\n"
           "  EOF\n"
           "  sudo systemctl reload apparmor";
  return "In a container, start it with `--security-opt seccomp=unconfined --security-opt "
         "systempaths=unconfined`, or run pykeep outside of it.";
}

}  // namespace sandbox::local
