#include "async/task_group.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace async {

namespace asio = boost::asio;

TaskGroup::TaskGroup(asio::any_io_executor executor, OnFailure on_failure)
    : executor_(executor),
      changed_(executor, asio::steady_timer::time_point::max()),
      on_failure_(std::move(on_failure)) {}

void TaskGroup::spawn(awaitable<void> task) {
  auto running = signals_.emplace(signals_.end());
  auto finished = [this, running](std::exception_ptr failure) {
    signals_.erase(running);
    changed_.cancel();
    if (failure && on_failure_) on_failure_(failure);
  };
  asio::co_spawn(executor_, std::move(task),
                 asio::bind_cancellation_slot(running->slot(), std::move(finished)));
}

void TaskGroup::cancel() {
  // A task may end, and so leave the list, while its signal is emitted.
  for (auto next = signals_.begin(); next != signals_.end();) {
    auto& signal = *next++;
    signal.emit(asio::cancellation_type::terminal);
  }
}

awaitable<void> TaskGroup::join() {
  auto token = asio::as_tuple(asio::use_awaitable);
  while (!signals_.empty()) co_await changed_.async_wait(token);
}

}  // namespace async
