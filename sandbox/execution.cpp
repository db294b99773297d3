#include "sandbox/execution.hpp"

namespace sandbox {

Execution::Execution(boost::asio::any_io_executor executor, std::string id, std::string code)
    : id(std::move(id)),
      code(std::move(code)),
      asked(std::chrono::steady_clock::now()),
      changed(executor),
      stop_changed(executor) {}

void Execution::request_stop(Stop why) {
  if (finished() || stop_ != Stop::none || why == Stop::none) return;
  stop_ = why;
  stop_changed.notify();
}

}  // namespace sandbox
