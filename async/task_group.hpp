#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <list>
#include <memory>

namespace async {

template <class T>
using awaitable = boost::asio::awaitable<T>;

// Owns the coroutines that something (a connection, a session) starts. Its owner joins it before it
// lets go of anything the coroutines refer to; nothing is ever spawned detached.
class TaskGroup {
 public:
  // What is called with an exception that leaves a task: a defect of ours, since tasks turn
  // expected failures into values. The default logs nothing and drops it.
  using OnFailure = std::function<void(std::exception_ptr)>;

  explicit TaskGroup(boost::asio::any_io_executor executor, OnFailure on_failure = {});
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts the task; it runs until its first wait before spawn returns control to the loop.
  void spawn(awaitable<void> task);

  // Asks every task to stop. They are still to be joined.
  void cancel();

  // Returns once no task is left. A coroutine that owns a group starts with
  // `co_await this_coro::throw_if_cancelled(false)`: once cancelled itself, it could not join
  // otherwise.
  awaitable<void> join();

  std::size_t size() const { return state_->signals.size(); }

 private:
  // Shared with the tasks: their last act is to leave the group, which may be gone by then when the
  // io_context is taken down with tasks in it.
  struct State {
    boost::asio::steady_timer changed;
    OnFailure on_failure;
    std::list<boost::asio::cancellation_signal> signals;
  };

  boost::asio::any_io_executor executor_;
  std::shared_ptr<State> state_;
};

}  // namespace async
