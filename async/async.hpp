#pragma once

// Coroutine helpers for a program that runs all its coroutines on one thread.
//
// Every member function here is called on that thread. Nothing blocks; every wait can be cancelled
// and then throws boost::system::system_error, whatever its code (so never ask an error whether it
// "was a cancellation": the one who cancelled keeps a flag).

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/deferred.hpp>
#include <boost/asio/experimental/channel.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <type_traits>

namespace async {

template <class T>
using awaitable = boost::asio::awaitable<T>;

// The result of `work`, or nullopt once `limit` has passed and `work` was cancelled and has ended.
// Throws what `work` throws, at once. The only timeout of this program.
// (Not `work || timer`: that one goes on waiting for the timer when the work fails.)
template <class T>
awaitable<std::optional<T>> within(std::chrono::milliseconds limit, awaitable<T> work) {
  namespace asio = boost::asio;
  auto executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor, limit);
  auto race = asio::experimental::make_parallel_group(
      asio::co_spawn(executor, std::move(work), asio::deferred), timer.async_wait(asio::deferred));
  auto [order, failed, result, timer_stopped] =
      co_await race.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  if (!failed) co_return std::move(result);
  if (!timer_stopped) co_return std::nullopt;
  std::rethrow_exception(failed);
}

// The same for work without a result: true when it ended in time.
inline awaitable<bool> within(std::chrono::milliseconds limit, awaitable<void> work) {
  namespace asio = boost::asio;
  auto executor = co_await asio::this_coro::executor;
  asio::steady_timer timer(executor, limit);
  auto race = asio::experimental::make_parallel_group(
      asio::co_spawn(executor, std::move(work), asio::deferred), timer.async_wait(asio::deferred));
  auto [order, failed, timer_stopped] =
      co_await race.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  if (!failed) co_return true;
  if (!timer_stopped) co_return false;
  std::rethrow_exception(failed);
}

// The result of `work`, or nullopt when `end` has come to its end first and `work` was cancelled
// and has ended. Throws what either throws.
template <class T>
awaitable<std::optional<T>> unless(awaitable<void> end, awaitable<T> work) {
  namespace asio = boost::asio;
  auto executor = co_await asio::this_coro::executor;
  auto race = asio::experimental::make_parallel_group(
      asio::co_spawn(executor, std::move(work), asio::deferred),
      asio::co_spawn(executor, std::move(end), asio::deferred));
  auto [order, failed, result, end_failed] =
      co_await race.async_wait(asio::experimental::wait_for_one(), asio::use_awaitable);
  if (!failed) co_return std::move(result);
  if (!end_failed) co_return std::nullopt;
  std::rethrow_exception(order[0] == 0 ? failed : end_failed);
}

inline awaitable<void> sleep_for(std::chrono::milliseconds time) {
  boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, time);
  co_await timer.async_wait(boost::asio::use_awaitable);
}

// Wakes everyone who waits when something has changed. Check the condition, then wait, in a loop.
class Changed {
 public:
  explicit Changed(boost::asio::any_io_executor executor)
      : timer_(executor, boost::asio::steady_timer::time_point::max()) {}

  void notify() { timer_.cancel(); }

  // Returns at the next notify() or once `limit` has passed.
  awaitable<void> wait(std::chrono::milliseconds limit) {
    auto waiting = wait();
    co_await within(limit, std::move(waiting));
  }

  awaitable<void> wait() {
    auto cancellation = co_await boost::asio::this_coro::cancellation_state;
    auto token = boost::asio::as_tuple(boost::asio::use_awaitable);
    auto [woken] = co_await timer_.async_wait(token);
    // notify() cancels the timer as well: only the coroutine's own state tells the two apart.
    if (cancellation.cancelled() != boost::asio::cancellation_type::none)
      throw boost::system::system_error(woken);
  }

 private:
  boost::asio::steady_timer timer_;
};

// Lets one coroutine at a time through, in the order they asked.
class Turn {
  using Slot = boost::asio::experimental::channel<void(boost::system::error_code)>;
  struct Release {
    void operator()(Slot* slot) const {
      slot->try_receive([](boost::system::error_code) {});
    }
  };

 public:
  using Hold = std::unique_ptr<Slot, Release>;  // gives the turn back when it goes away

  explicit Turn(boost::asio::any_io_executor executor) : slot_(executor, 1) {}

  awaitable<Hold> take() {
    boost::system::error_code none;
    co_await slot_.async_send(none, boost::asio::use_awaitable);
    co_return Hold(&slot_);
  }

 private:
  Slot slot_;
};

namespace detail {
template <class F>
awaitable<std::invoke_result_t<F&>> call(F work) {
  co_return work();
}
}  // namespace detail

// Runs `work()`, which may block, on the pool, and resumes the caller on its own executor with the
// result. Throws what it throws. A cancellation does not abandon the work but takes effect after
// it, so `work` may refer to the caller's locals.
template <class F>
awaitable<std::invoke_result_t<F&>> on_pool(boost::asio::thread_pool& pool, F work) {
  namespace asio = boost::asio;
  auto uncancelled = asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable);
  auto running = detail::call(std::move(work));
  co_return co_await asio::co_spawn(pool, std::move(running), uncancelled);
}

}  // namespace async
