#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/local/process.hpp"
#include "sandbox/sandbox.hpp"

namespace sandbox::local {

// Control groups, as far as this server may make any: version 2 (a delegated subtree), else version
// 1 controller by controller. What they cannot limit here, others must: see Cgroup::limits_*.

enum class Controller { memory, pids, cpu };
constexpr Controller kControllers[] = {Controller::memory, Controller::pids, Controller::cpu};

const char* name_of(Controller controller);

// A directory of ours that the sandboxes' groups are made in.
struct Hierarchy {
  int version = 2;
  std::filesystem::path directory;
  std::vector<Controller> controllers;
};

// Finds and prepares them, once, at the first call; removes the empty groups of servers that have
// died. Never throws: a hierarchy that cannot be used is left out.
const std::vector<Hierarchy>& hierarchies();

// One sandbox's group in each hierarchy.
class Cgroup {
 public:
  // Throws StartError when a limit that the hierarchy has cannot be set.
  Cgroup(const std::string& name, const Limits& limits);
  Cgroup(const Cgroup&) = delete;
  Cgroup& operator=(const Cgroup&) = delete;
  ~Cgroup();  // removes the group, now or (while processes are dying in it) at a later launch

  void add(pid_t process);  // throws StartError

  bool limits(Controller controller) const;
  std::uint64_t memory_kills() const;  // 0 where unknown
  std::uint64_t memory() const;
  std::uint64_t memory_peak() const;

 private:
  struct Group {
    int version;
    std::vector<Controller> controllers;
    std::filesystem::path directory;
  };
  const Group* with(Controller controller) const;
  std::vector<Group> groups_;
  Fd memory_events_;  // held open: it is read after every cell
};

}  // namespace sandbox::local
