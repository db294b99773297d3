#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sandbox/frames.hpp"
#include "sandbox/kernel.hpp"

namespace sandbox {

// Runs a coroutine to its end; throws what it throws, and fails rather than hangs.
inline void run_to_end(boost::asio::io_context& io, awaitable<void> work,
                       std::chrono::milliseconds limit = std::chrono::seconds(60)) {
  std::exception_ptr failure;
  bool ended = false;
  auto on_end = [&](std::exception_ptr why) {
    failure = why;
    ended = true;
    io.stop();
  };
  boost::asio::co_spawn(io, std::move(work), on_end);
  io.restart();
  io.run_for(limit);
  if (!ended) throw std::runtime_error("the test did not end in time");
  if (failure) std::rethrow_exception(failure);
}

// Lets things go on for some time. What is ready is done however late it has become.
inline void let_run(boost::asio::io_context& io, std::chrono::milliseconds time) {
  io.restart();
  io.run_for(time);
  io.poll();
}

inline boost::json::object object(std::string_view text) {
  return boost::json::parse(text).as_object();
}

inline Frame frame(std::string_view header, std::string payload = {}) {
  return Frame{object(header), std::move(payload)};
}

// A kernel that does what its test says: `say` is what comes from it, `on_send` and `on_interrupt`
// what it does when spoken to.
struct FakeKernel {
  explicit FakeKernel(boost::asio::io_context& io) : arrived(io.get_executor()) {}

  void say(KernelEvent event) {
    events.push_back(std::move(event));
    arrived.notify();
  }
  void out(std::string text) { say(StreamBytes{false, std::move(text)}); }
  void err(std::string text) { say(StreamBytes{true, std::move(text)}); }
  void says(std::string_view header, std::string payload = {}) {
    say(frame(header, std::move(payload)));
  }
  void die(std::string cause) {
    exit.cause = std::move(cause);
    exited = true;
    say(Closed());
  }
  void ready() { says(R"({"ev":"ready","python":"3.11.2","ipython":"8.5.0"})"); }

  std::deque<KernelEvent> events;
  async::Changed arrived;
  std::vector<boost::json::object> sent;
  std::function<void(const boost::json::object&)> on_send = [](const auto&) {};
  std::function<void()> on_interrupt = [] {};
  Exit exit;
  bool exited = false;
  bool killed = false;
  int interrupts = 0;
  int child_kills = 0;
  std::uint64_t memory_kills = 0;
};

class FakeChannel : public KernelChannel {
 public:
  explicit FakeChannel(std::shared_ptr<FakeKernel> kernel) : kernel_(std::move(kernel)) {}

  awaitable<KernelEvent> next() override {
    for (;;) {
      if (auto event = poll()) co_return std::move(*event);
      co_await kernel_->arrived.wait();
    }
  }
  std::optional<KernelEvent> poll() override {
    if (kernel_->events.empty()) return std::nullopt;
    KernelEvent event = std::move(kernel_->events.front());
    kernel_->events.pop_front();
    return event;
  }
  awaitable<void> send(boost::json::object header, std::string) override {
    if (kernel_->exited) throw boost::system::system_error(boost::asio::error::broken_pipe);
    kernel_->sent.push_back(header);
    kernel_->on_send(kernel_->sent.back());
    co_return;
  }
  void interrupt() override {
    ++kernel_->interrupts;
    kernel_->on_interrupt();
  }
  void kill_children() override { ++kernel_->child_kills; }
  void kill() override {
    kernel_->killed = true;
    if (!kernel_->exited) kernel_->die("killed by SIGKILL");
  }
  awaitable<Exit> exit() override {
    while (!kernel_->exited) co_await kernel_->arrived.wait();
    co_return kernel_->exit;
  }
  std::uint64_t memory_kills() override { return kernel_->memory_kills; }

 private:
  std::shared_ptr<FakeKernel> kernel_;
};

}  // namespace sandbox
