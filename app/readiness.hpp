#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "async/async.hpp"
#include "sandbox/sandbox.hpp"

namespace app {

// Whether sandboxes can start here: what `pykeep doctor` finds. That tries everything for real,
// which holds up the loop for most of a second, and whoever asks need not be known: so it is asked
// until the answer is yes, at most once a minute. Later failures show in the metrics.
class Readiness {
 public:
  // The backend outlives it.
  Readiness(boost::asio::any_io_executor executor, sandbox::Backend& backend)
      : backend_(backend), turn_(executor) {}

  // Empty, or what is in the way.
  async::awaitable<std::string> problem();

 private:
  sandbox::Backend& backend_;
  async::Turn turn_;
  std::optional<std::chrono::steady_clock::time_point> checked_;
  std::string problem_;
};

}  // namespace app
