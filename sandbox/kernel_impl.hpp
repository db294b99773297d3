#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "sandbox/frames.hpp"
#include "sandbox/kernel.hpp"
#include "sandbox/output_log.hpp"

namespace sandbox {

// Two coroutines meet here. The reader (kernel_reader.cpp) runs as long as the kernel lives: it
// takes every event, so that nothing in the sandbox ever blocks on a full pipe, and is the only one
// that ends an execution. `run` (kernel.cpp) asks for a cell, then watches the clock and the
// requests to stop until the reader has ended it.
class Kernel::Impl : public std::enable_shared_from_this<Impl> {
 public:
  using Clock = std::chrono::steady_clock;

  Impl(boost::asio::any_io_executor executor, std::unique_ptr<KernelChannel> channel,
       OutputLimits limits, Spill* spill);

  void start() { tasks_.spawn(read(shared_from_this())); }
  // The Kernel goes away: the reader comes to its end by itself, and needs nothing but this.
  void leave();

  awaitable<void> ready(std::chrono::milliseconds limit);
  awaitable<void> resumed(boost::json::object how, std::chrono::milliseconds limit);
  awaitable<void> run(Execution& execution);
  awaitable<void> answer(Execution& execution, std::optional<std::string> value);
  awaitable<void> close();

  bool alive() const { return phase_ != Phase::dead; }
  const boost::json::object& greeting() const { return greeting_; }
  std::string background() const;

 private:
  enum class Phase { starting, ready, dead };
  // Why the running cell is being stopped.
  enum class Reason { none, asked, timeout, closing };

  static awaitable<void> read(std::shared_ptr<Impl> self);
  awaitable<void> read_all();
  awaitable<void> take(StreamBytes piece);
  awaitable<void> take(Frame frame);
  void on(Ready message);
  void on(Started message);
  void on(Shown message);
  void on(Asked message);
  void on(Failed message);
  awaitable<void> on_done(Done message);
  awaitable<void> ended(Execution::Status status);
  void settle(Execution::Status status);
  Execution::Status stopped_status() const;
  awaitable<void> die(std::string broken);
  void bury(std::string cause);

  void collect();
  void begin(Execution& execution);
  awaitable<void> watch(Execution& execution);
  void kill(Reason reason);
  Clock::time_point escalate();
  awaitable<bool> send(boost::json::object header);
  awaitable<bool> wait_while(Phase phase, std::chrono::milliseconds limit);
  void hand_over_background();
  void forget_background();
  std::string last_words() const;

  async::TaskGroup tasks_;
  std::unique_ptr<KernelChannel> channel_;
  OutputLimits limits_;
  Spill* spill_;

  async::Changed phase_changed_;
  Phase phase_ = Phase::starting;
  boost::json::object greeting_;
  std::string broken_;  // how it broke the link, if `run` saw that before the reader
  std::string cause_;   // of its death
  std::uint64_t memory_kills_ = 0;

  std::deque<Output> background_;
  std::optional<OutputLog> background_log_;

  // Of the current cell, or the last one.
  Execution* current_ = nullptr;
  std::optional<OutputLog> log_;
  std::int64_t id_ = 0;
  bool started_ = false;
  bool spilling_ = false;
  std::size_t idle_bytes_ = 0;  // read while no cell ran, since the last pause
  Reason reason_ = Reason::none;
  Clock::time_point stop_began_;
  int step_ = 0;         // how far its stopping has escalated
  bool killed_ = false;  // by us, to stop or to close it
};

}  // namespace sandbox
