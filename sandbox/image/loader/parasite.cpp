#include "sandbox/image/parasite.hpp"

#include <linux/prctl.h>

#include "sandbox/image/loader/system.hpp"

using namespace sandbox::image;
using loader::call;

extern "C" {

ParasiteResult parasite_result;

// Runs in each thread of the frozen process in turn, while all others stand still. Every signal but
// SIGTRAP is blocked. It only asks.
void parasite_main(std::uint64_t is_main) {
  ParasiteResult& result = parasite_result;
  call(__NR_prctl, PR_GET_TID_ADDRESS, &result.clear_tid);
  struct {
    std::uint64_t address;
    std::uint32_t flags, padding;
    std::uint64_t size;
  } stack{};
  call(__NR_sigaltstack, 0, &stack);
  result.alternate_stack = stack.address;
  result.alternate_stack_flags = stack.flags;
  result.alternate_stack_size = stack.size;
  result.timer_slack = static_cast<std::uint64_t>(call(__NR_prctl, PR_GET_TIMERSLACK));
  if (!is_main) return;
  for (int signal = 1; signal <= kSignalCount; ++signal)
    call(__NR_rt_sigaction, signal, 0, &result.actions[signal - 1], sizeof(std::uint64_t));
  for (int timer = 0; timer < 3; ++timer) call(__NR_getitimer, timer, result.timers[timer]);
  for (int limit = 0; limit < kLimitCount; ++limit)
    call(__NR_prlimit64, 0, limit, 0, result.limits[limit]);
  call(__NR_prctl, PR_GET_CHILD_SUBREAPER, &result.subreaper);
  result.brk = static_cast<std::uint64_t>(call(__NR_brk, 0));
}
}
