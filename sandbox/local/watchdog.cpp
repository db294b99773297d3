#include "sandbox/local/watchdog.hpp"

namespace sandbox::local {

namespace {

// One process alone cannot get past RLIMIT_DATA; this is for several together.
constexpr std::chrono::milliseconds kInterval{200};

}  // namespace

awaitable<void> watch(Process& process) {
  while (process.is_sampled()) {
    process.enforce();
    co_await async::sleep_for(kInterval);
  }
}

}  // namespace sandbox::local
