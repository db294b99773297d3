#include "sandbox/local/limits.hpp"

#include <algorithm>
#include <cerrno>

namespace sandbox::local {

std::array<ResourceLimit, 5> resource_limits(const Limits& limits, std::uint64_t not_own) {
  return {{{RLIMIT_DATA, limits.memory + not_own},
           {RLIMIT_FSIZE, limits.file},
           {RLIMIT_NOFILE, limits.open_files},
           {RLIMIT_CORE, 0},
           {RLIMIT_MEMLOCK, 8 << 20}}};
}

int apply(const std::array<ResourceLimit, 5>& limits) {
  for (const ResourceLimit& limit : limits) {
    rlimit both{limit.value, limit.value};
    // An unprivileged server cannot raise its own hard limit; a lower one is at least as strict.
    rlimit now{};
    if (getrlimit(limit.resource, &now) == -1) return errno;
    if (now.rlim_max < limit.value) both.rlim_cur = both.rlim_max = now.rlim_max;
    if (setrlimit(limit.resource, &both) == -1) return errno;
  }
  return 0;
}

int limit_processes(pid_t init, std::uint64_t processes) {
  rlimit now{};  // a lower one cannot be raised, and is at least as strict
  if (prlimit(init, RLIMIT_NPROC, nullptr, &now) == -1) return errno;
  rlim_t value = std::min<rlim_t>(processes, now.rlim_max);
  rlimit both{value, value};
  return prlimit(init, RLIMIT_NPROC, &both, nullptr) == -1 ? errno : 0;
}

}  // namespace sandbox::local
