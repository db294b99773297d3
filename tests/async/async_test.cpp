#include "async/async.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <future>
#include <stdexcept>
#include <thread>

#include "async/task_group.hpp"

namespace async {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

// A loop whose tasks can be cancelled; ends with all of them joined.
struct Loop {
  asio::io_context io{1};
  std::exception_ptr failure;
  TaskGroup tasks{io.get_executor(), [this](std::exception_ptr why) { failure = why; }};

  // Until nothing is left to do; with a limit: until then, and what is ready is done in any case.
  void run(std::chrono::milliseconds limit = 60s) {
    io.restart();
    io.run_for(limit);
    io.poll();
  }
  ~Loop() {
    tasks.cancel();
    run();
    CHECK(tasks.size() == 0);
  }
};

struct Lives {  // counts the instances that are alive
  explicit Lives(int& count) : count(count) { ++count; }
  Lives(const Lives& other) : count(other.count) { ++count; }
  ~Lives() { --count; }
  int& count;
};

awaitable<int> answer_after(std::chrono::milliseconds time, int& alive) {
  Lives here(alive);
  co_await sleep_for(time);
  co_return 42;
}

awaitable<int> fail_after(std::chrono::milliseconds time) {
  co_await sleep_for(time);
  throw std::runtime_error("failed");
}

awaitable<void> fail() {
  throw std::runtime_error("failed at once");
  co_return;
}

awaitable<void> outcome(std::chrono::milliseconds limit, awaitable<int> work, std::string& result) {
  try {
    std::optional<int> got = co_await within(limit, std::move(work));
    result = got ? std::to_string(*got) : "late";
  } catch (const std::runtime_error& wrong) {
    result = wrong.what();
  }
}

TEST_CASE("within: the result in time, nothing when late, a failure at once") {
  struct Row {
    const char* name;
    std::chrono::milliseconds limit, time;
    bool fails;
    const char* expected;
  };
  for (const Row& row : {
           Row{"in time", 100s, 5ms, false, "42"},
           Row{"no wait at all", 100s, 0ms, false, "42"},
           Row{"late", 10ms, 100s, false, "late"},
           Row{"fails", 100s, 5ms, true, "failed"},
           Row{"late before it fails", 10ms, 100s, true, "late"},
       }) {
    CAPTURE(row.name);
    Loop loop;
    std::string result;
    int alive = 0;
    auto begun = Clock::now();
    auto work = row.fails ? fail_after(row.time) : answer_after(row.time, alive);
    loop.tasks.spawn(outcome(row.limit, std::move(work), result));
    loop.run();
    CHECK(result == row.expected);
    CHECK(alive == 0);  // late work was cancelled and has ended
    CHECK(Clock::now() - begun < 30s);
  }
}

awaitable<void> outcome_unless(awaitable<void> end, awaitable<int> work, std::string& result) {
  try {
    std::optional<int> got = co_await unless(std::move(end), std::move(work));
    result = got ? std::to_string(*got) : "ended";
  } catch (const std::exception& failure) {
    result = failure.what();
  }
}

TEST_CASE("unless: the result, nothing when the end comes first, a failure of either at once") {
  struct Row {
    std::chrono::milliseconds end;
    awaitable<int> work;
    const char* expected;
  };
  Loop loop;
  int alive = 0;
  Row rows[] = {{100s, answer_after(5ms, alive), "42"},
                {5ms, answer_after(100s, alive), "ended"},
                {100s, fail_after(5ms), "failed"},
                {100s, fail_after(0ms), "failed"}};
  for (Row& row : rows) {
    CAPTURE(row.expected);
    std::string result;
    auto started = Clock::now();
    loop.tasks.spawn(outcome_unless(sleep_for(row.end), std::move(row.work), result));
    loop.run();
    CHECK(result == row.expected);
    CHECK(Clock::now() - started < 30s);
    CHECK(alive == 0);
  }
  std::string result;
  loop.tasks.spawn(outcome_unless(fail(), answer_after(100s, alive), result));
  loop.run();
  CHECK(result == "failed at once");
  CHECK(alive == 0);
}

awaitable<void> try_within(std::string& result) {
  int alive = 0;
  auto work = answer_after(100s, alive);
  try {
    co_await within(200s, std::move(work));
    result = "returned";
  } catch (const boost::system::system_error&) {
    result = "cancelled";
  }
}

TEST_CASE("within: a cancellation from outside is an exception, not a timeout") {
  Loop loop;
  std::string result;
  loop.tasks.spawn(try_within(result));
  loop.run(10ms);
  loop.tasks.cancel();
  loop.run();
  CHECK(result == "cancelled");
}

awaitable<void> wait_until(Changed& changed, const int& value, int wanted, int& wakes) {
  while (value < wanted) {
    co_await changed.wait(100s);
    ++wakes;
  }
}

TEST_CASE("Changed wakes everyone, as often as it is notified") {
  Loop loop;
  Changed changed(loop.io.get_executor());
  int value = 0, wakes[3] = {};
  for (int i = 0; i < 3; ++i) loop.tasks.spawn(wait_until(changed, value, i + 1, wakes[i]));
  loop.run(5ms);
  for (value = 1; value <= 3; ++value) {
    loop.run(5ms);
    changed.notify();
    loop.run(5ms);
    CHECK(loop.tasks.size() == static_cast<std::size_t>(3 - value));
  }
  CHECK(wakes[0] == 1);
  CHECK(wakes[2] == 3);
}

awaitable<void> wait_once(Changed& changed, std::chrono::milliseconds limit, std::string& result) {
  try {
    co_await changed.wait(limit);
    result = "woken";
  } catch (const boost::system::system_error&) {
    result = "cancelled";
  }
}

TEST_CASE("Changed: a wait ends at its limit, and throws when it is cancelled") {
  Loop loop;
  Changed changed(loop.io.get_executor());
  std::string result;
  loop.tasks.spawn(wait_once(changed, 10ms, result));
  loop.run();
  CHECK(result == "woken");
  loop.tasks.spawn(wait_once(changed, 100s, result));
  loop.run(5ms);
  loop.tasks.cancel();
  loop.run();
  CHECK(result == "cancelled");
}

TEST_CASE("Changed: what waits is let go when it goes away") {
  Loop loop;
  auto changed = std::make_unique<Changed>(loop.io.get_executor());
  std::string result;
  loop.tasks.spawn(wait_once(*changed, 100s, result));
  loop.run(5ms);
  changed.reset();
  loop.run();
  CHECK(result == "woken");
}

awaitable<void> take_turn(Turn& turn, int who, std::vector<int>& order,
                          std::chrono::milliseconds time) {
  Turn::Hold hold = co_await turn.take();
  order.push_back(who);
  co_await sleep_for(time);
  order.push_back(who);
}

TEST_CASE("Turn lets one through at a time, in order") {
  Loop loop;
  Turn turn(loop.io.get_executor());
  std::vector<int> order;
  for (int who : {1, 2, 3}) loop.tasks.spawn(take_turn(turn, who, order, 5ms));
  loop.run();
  CHECK(order == std::vector<int>{1, 1, 2, 2, 3, 3});
}

TEST_CASE("Turn: who is cancelled, waiting or holding, gives way to the next") {
  Loop loop;
  Turn turn(loop.io.get_executor());
  std::vector<int> order;
  TaskGroup others(loop.io.get_executor());
  others.spawn(take_turn(turn, 1, order, 100s));
  others.spawn(take_turn(turn, 2, order, 100s));
  loop.tasks.spawn(take_turn(turn, 3, order, 0ms));
  loop.run(10ms);
  CHECK(order == std::vector<int>{1});
  others.cancel();
  loop.run();
  CHECK(order == std::vector<int>{1, 3, 3});
}

awaitable<void> take_within(Turn& turn, bool& got) {
  auto taking = turn.take();
  auto hold = co_await within(10ms, std::move(taking));
  got = hold.has_value();
}

TEST_CASE("Turn: giving up on a turn leaves it to others") {
  Loop loop;
  Turn turn(loop.io.get_executor());
  std::vector<int> order;
  bool got = true;
  loop.tasks.spawn(take_turn(turn, 1, order, 500ms));
  loop.tasks.spawn(take_within(turn, got));
  loop.tasks.spawn(take_turn(turn, 3, order, 0ms));
  loop.run();
  CHECK_FALSE(got);
  CHECK(order == std::vector<int>{1, 1, 3, 3});
}

awaitable<void> ask_pool(asio::thread_pool& pool, std::future<void> go, std::string& result) {
  auto here = std::this_thread::get_id();
  std::string text = "done";
  auto work = [&] {
    go.wait();
    return text + (std::this_thread::get_id() == here ? " here" : " there");
  };
  result = "started";
  try {
    result = co_await on_pool(pool, work);
    CHECK(std::this_thread::get_id() == here);
    co_await sleep_for(0ms);
    result += ", went on";
  } catch (const boost::system::system_error&) {
    result += ", cancelled";
  }
}

TEST_CASE("on_pool runs elsewhere, comes back, and is not abandoned by a cancellation") {
  for (bool cancel : {false, true}) {
    CAPTURE(cancel);
    asio::thread_pool pool(1);
    Loop loop;
    std::string result;
    std::promise<void> go;
    loop.tasks.spawn(ask_pool(pool, go.get_future(), result));
    loop.run(10ms);
    CHECK(result == "started");
    if (cancel) loop.tasks.cancel();
    loop.run(10ms);
    CHECK(result == "started");
    go.set_value();
    loop.run();
    CHECK(result == (cancel ? "done there, cancelled" : "done there, went on"));
  }
}

awaitable<void> fail_on_pool(asio::thread_pool& pool, std::string& result) {
  auto work = []() -> int { throw std::runtime_error("no disk"); };
  try {
    co_await on_pool(pool, work);
  } catch (const std::runtime_error& wrong) {
    result = wrong.what();
  }
}

TEST_CASE("on_pool throws what the work throws") {
  asio::thread_pool pool(1);
  Loop loop;
  std::string result;
  loop.tasks.spawn(fail_on_pool(pool, result));
  loop.run();
  CHECK(result == "no disk");
}

awaitable<void> stubborn(bool& cleaned_up) {
  try {
    co_await sleep_for(100s);
  } catch (const boost::system::system_error&) {
  }
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await sleep_for(20ms);
  cleaned_up = true;
}

awaitable<void> own_a_group(TaskGroup& group, bool& cleaned_up, bool& joined) {
  co_await asio::this_coro::throw_if_cancelled(false);
  group.spawn(stubborn(cleaned_up));
  boost::system::error_code ended;
  asio::steady_timer timer(co_await asio::this_coro::executor, 100s);
  co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ended));
  group.cancel();
  co_await group.join();
  joined = cleaned_up;
}

TEST_CASE("TaskGroup: a cancelled owner still joins tasks that take their time") {
  Loop loop;
  TaskGroup inner(loop.io.get_executor());
  bool cleaned_up = false, joined = false;
  loop.tasks.spawn(own_a_group(inner, cleaned_up, joined));
  loop.run(10ms);
  loop.tasks.cancel();
  loop.run();
  CHECK(joined);
}

TEST_CASE("TaskGroup reports what leaves a task, and goes on") {
  Loop loop;
  loop.tasks.spawn(fail());
  loop.run();
  CHECK(loop.failure);
  CHECK(loop.tasks.size() == 0);
}

awaitable<void> sleep_long(int& alive) {
  Lives here(alive);
  co_await sleep_for(100s);
}

TEST_CASE("TaskGroup may go away before its tasks, with the loop or before it") {
  int alive = 0;
  for (bool run_on : {true, false}) {
    CAPTURE(run_on);
    asio::io_context io(1);
    auto tasks = std::make_unique<TaskGroup>(io.get_executor());
    for (int i = 0; i < 3; ++i) tasks->spawn(sleep_long(alive));
    io.poll();
    CHECK(alive == 3);
    if (run_on) tasks->cancel();
    tasks.reset();
    io.restart();
    io.run_for(20ms);
    io.poll();
    CHECK(alive == (run_on ? 0 : 3));
  }
  CHECK(alive == 0);
}

}  // namespace
}  // namespace async
