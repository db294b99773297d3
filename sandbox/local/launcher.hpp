#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/local/limits.hpp"
#include "sandbox/local/mounts.hpp"
#include "sandbox/local/process.hpp"

namespace sandbox::local {

// A program to start outside the sandbox (bwrap), and what it becomes before it is that program.
struct Plan {
  std::vector<std::string>
      arguments;                 // [0]: absolute path of the program; its environment is empty
  std::vector<int> descriptors;  // descriptors[n] becomes n; each >= kAboveProgram
  std::array<ResourceLimit, 5> limits;
  std::string oom_score;  // for /proc/self/oom_score_adj
  int niceness = 0;       // added to the server's
  // For Images::monotonic and boottime: as the kernel reads it from /proc/self/timens_offsets.
  std::string clock_offsets;
  // For a root server: the user to become, and what that user must reach although directories above
  // it may be closed to him. Staged below kStaging, as 0, 1, ... in a mount namespace of its own.
  std::optional<uid_t> user;
  std::vector<Bind> staged;
};

// Exists everywhere (bwrap itself needs it) and hides nothing: all else is staged.
constexpr const char* kStaging = "/tmp";
std::string staged_path(std::size_t index);

struct Spawned {
  pid_t pid = 0;
  Fd pidfd;
};

// Starts it. `place` is called with its pid before it does anything: it puts it into its control
// group. From the main thread only: the program dies with the thread that spawned it. Throws
// StartError with the step that failed; nothing is left running then.
Spawned spawn(const Plan& plan, const std::function<void(pid_t)>& place);

}  // namespace sandbox::local
