#include "app/readiness.hpp"

namespace app {

namespace {

constexpr std::chrono::seconds kAskedAgainAfter{60};

std::string missing_of(const std::vector<sandbox::Layer>& layers) {
  for (const sandbox::Layer& layer : layers)
    if (layer.required && layer.state == sandbox::Layer::State::absent)
      return layer.name + ": " + layer.detail + ". `pykeep doctor` says more.";
  return "";
}

}  // namespace

async::awaitable<std::string> Readiness::problem() {
  auto turn = co_await turn_.take();
  auto now = std::chrono::steady_clock::now();
  bool known = checked_ && (problem_.empty() || now - *checked_ < kAskedAgainAfter);
  if (known) co_return problem_;
  auto layers = co_await backend_.check();
  problem_ = missing_of(layers);
  checked_ = now;
  co_return problem_;
}

}  // namespace app
