#pragma once

#include <chrono>
#include <functional>

#include "async/async.hpp"
#include "sandbox/pandastack/errors.hpp"

namespace sandbox::pandastack {

// Whether it may go better the next time: the network, or a server that had a bad moment.
inline bool is_passing(const Error& failure) {
  bool by_server = failure.status >= 500 && failure.status != 501 && failure.status != 507;
  bool as_before = failure.failure == Failure::closed || failure.failure == Failure::too_large;
  return !as_before && (failure.status == 0 || by_server);
}

// The same, where the next time must not take long.
inline bool is_passing_soon(const Error& failure) {
  return failure.failure != Failure::deadline && is_passing(failure);
}

// is_passing() of a sandbox that was just made: not everything there knows it at once.
inline bool is_passing_at_first(const Error& failure) {
  return failure.status == 404 || is_passing(failure);
}

// The result of a call that may be made again whatever became of it; a few times, if it fails.
template <class T>
async::awaitable<T> persist(std::function<async::awaitable<T>()> call,
                            bool (*may_pass)(const Error&) = is_passing) {
  constexpr int kAttempts = 4;
  std::chrono::milliseconds pause{300};
  for (int attempt = 1;; ++attempt) {
    try {
      co_return co_await call();
    } catch (const Error& failure) {
      if (attempt == kAttempts || !may_pass(failure)) throw;
    }
    co_await async::sleep_for(pause);
    pause *= 2;
  }
}

}  // namespace sandbox::pandastack
