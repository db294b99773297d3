#include "async/task_group.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace async {

namespace asio = boost::asio;

TaskGroup::TaskGroup(asio::any_io_executor executor, OnFailure on_failure)
    : executor_(executor),
      state_(new State{asio::steady_timer(executor, asio::steady_timer::time_point::max()),
                       std::move(on_failure),
                       {}}) {}

void TaskGroup::spawn(awaitable<void> task) {
  auto running = state_->signals.emplace(state_->signals.end());
  auto finished = [state = state_, running](std::exception_ptr failure) {
    state->signals.erase(running);
    state->changed.cancel();
    if (failure && state->on_failure) state->on_failure(failure);
  };
  asio::co_spawn(executor_, std::move(task),
                 asio::bind_cancellation_slot(running->slot(), std::move(finished)));
}

void TaskGroup::cancel() {
  // A task may end, and so leave the list, while its signal is emitted.
  auto& signals = state_->signals;
  for (auto next = signals.begin(); next != signals.end();) {
    auto& signal = *next++;
    signal.emit(asio::cancellation_type::terminal);
  }
}

awaitable<void> TaskGroup::join() {
  auto state = state_;
  auto token = asio::as_tuple(asio::use_awaitable);
  while (!state->signals.empty()) co_await state->changed.async_wait(token);
}

}  // namespace async
