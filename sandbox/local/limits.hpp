#pragma once

#include <sys/resource.h>
#include <sys/types.h>

#include <array>

#include "sandbox/sandbox.hpp"

namespace sandbox::local {

struct ResourceLimit {
  __rlimit_resource_t resource;
  rlim_t value;
};

// Per process, inherited by all in the sandbox. RLIMIT_DATA lets an allocation past the memory
// limit raise MemoryError, where the group's limit could only kill; `not_own` bytes that it counts
// come on top.
std::array<ResourceLimit, 5> resource_limits(const Limits& limits, std::uint64_t not_own = 0);

// Sets them for the calling process. Returns 0 or an errno; for between clone and exec.
int apply(const std::array<ResourceLimit, 5>& limits);

// Bounds the processes and threads of the user namespace that `init` (pid 1 of a sandbox that has
// not forked yet) is in. From outside, since the limit counts per user namespace from Linux 5.14
// on: set before the namespace exists, it would count the user's own programs. Returns 0 or an
// errno.
int limit_processes(pid_t init, std::uint64_t processes);

}  // namespace sandbox::local
