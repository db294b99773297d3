#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "async/async.hpp"
#include "sandbox/sandbox.hpp"

namespace app {

// Whether new sessions could start: what `pykeep doctor` finds, asked at most once a minute, since
// it tries everything for real and whoever asks need not be known.
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
