#include "sandbox/kernel.hpp"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <iterator>
#include <stdexcept>

#include "sandbox/bounded_text.hpp"
#include "sandbox/kernel_impl.hpp"

namespace sandbox {

namespace asio = boost::asio;
namespace json = boost::json;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

namespace {

constexpr auto kStep = 1000ms;  // of the escalation, as kernel.hpp describes it
constexpr auto kShutdown = 300ms;
constexpr auto kEnd = 600ms;  // from SIGKILL until it is reported as dead
constexpr auto kNever = std::chrono::hours(24 * 365);
constexpr int kCollect = 64;  // events; more than two full pipes hold
constexpr std::size_t kLastWords = 4096;

milliseconds until(std::chrono::steady_clock::time_point when) {
  auto left = std::chrono::ceil<milliseconds>(when - std::chrono::steady_clock::now());
  return std::max(left, 0ms);
}

}  // namespace

Kernel::Impl::Impl(asio::any_io_executor executor, std::unique_ptr<KernelChannel> channel,
                   OutputLimits limits, Spill* spill)
    : tasks_(executor),
      channel_(std::move(channel)),
      limits_(limits),
      spill_(spill),
      phase_changed_(executor) {
  forget_background();
}

void Kernel::Impl::leave() {
  spill_ = nullptr;
  if (phase_ != Phase::dead) kill(Reason::closing);
}

// ---- start and end

awaitable<void> Kernel::Impl::ready(milliseconds limit) {
  bool in_time = co_await wait_while(Phase::starting, limit);
  if (phase_ == Phase::ready) co_return;
  if (!in_time) {
    channel_->kill();
    auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit).count();
    cause_ = "it was not ready after " + std::to_string(seconds) + " s";
  }
  std::string problem = "Python did not start: " + cause_;
  std::string words = last_words();
  if (!words.empty()) problem += "\nIt said:\n" + words;
  throw std::runtime_error(problem);
}

awaitable<void> Kernel::Impl::resumed(json::object how, milliseconds limit) {
  how["op"] = "resumed";
  if (phase_ == Phase::ready) phase_ = Phase::starting;
  co_await send(std::move(how));  // if it is gone already, it is known below
  co_await ready(limit);
}

awaitable<bool> Kernel::Impl::wait_while(Phase phase, milliseconds limit) {
  auto deadline = Clock::now() + limit;
  while (phase_ == phase && Clock::now() < deadline) co_await phase_changed_.wait(until(deadline));
  co_return phase_ != phase;
}

std::string Kernel::Impl::last_words() const {
  std::string words;
  for (const Output& output : background_) {
    const auto* text = std::get_if<Text>(&output.what);
    if (text && text->stream == StreamName::err) words += text->bytes;
  }
  return readable_end(words, kLastWords);
}

// What was printed before the cell that runs is told apart from what the cell prints.
void Kernel::Impl::hand_over_background() {
  background_log_->finish();
  std::ranges::move(background_, std::back_inserter(current_->background));
  forget_background();
}

std::string Kernel::Impl::background() const {
  std::string bytes;
  for (const Output& output : background_)
    if (const auto* text = std::get_if<Text>(&output.what)) bytes += text->bytes;
  return bytes;
}

void Kernel::Impl::forget_background() {
  background_.clear();
  OutputLimits limits = limits_;
  limits.head_bytes = limits.tail_bytes = limits.background_bytes / 2;
  background_log_.emplace(background_, limits);
}

awaitable<void> Kernel::Impl::close() {
  co_await asio::this_coro::throw_if_cancelled(false);
  if (phase_ == Phase::ready && !current_) {
    json::object request;
    request["op"] = "shutdown";
    auto sending = send(std::move(request));
    co_await async::within(kShutdown, std::move(sending));
    co_await wait_while(Phase::ready, kShutdown);
  }
  if (phase_ != Phase::dead) {
    kill(Reason::closing);
    co_await wait_while(phase_, kEnd);
  }
  tasks_.cancel();
  co_await tasks_.join();
}

void Kernel::Impl::kill(Reason reason) {
  reason_ = reason;
  killed_ = true;
  channel_->kill();
}

// ---- one cell

awaitable<void> Kernel::Impl::run(Execution& execution) {
  // Cancelled or not, the execution is brought to its end.
  co_await asio::this_coro::throw_if_cancelled(false);
  collect();
  begin(execution);
  if (phase_ == Phase::dead) {
    settle(Execution::Status::kernel_died);
    co_return;
  }
  json::object request;
  request["op"] = "execute";
  request["id"] = id_;
  request["code"] = execution.code;
  if (execution.stdin_text) request["stdin"] = *execution.stdin_text;
  request["can_ask"] = execution.can_ask;
  bool sent = co_await send(std::move(request));
  if (!sent) channel_->kill();
  co_await watch(execution);
}

// What the pipes still hold was printed before this cell.
void Kernel::Impl::collect() {
  for (int i = 0; i < kCollect; ++i) {
    std::optional<KernelEvent> event = channel_->poll();
    if (!event) return;
    if (auto* piece = std::get_if<StreamBytes>(&*event))
      background_log_->text(piece->is_stderr ? StreamName::err : StreamName::out, piece->bytes);
    else if (auto* violation = std::get_if<Violation>(&*event))
      broken_ = std::move(violation->what);
  }
}

void Kernel::Impl::begin(Execution& execution) {
  ++id_;
  current_ = &execution;
  hand_over_background();
  started_ = spilling_ = false;
  reason_ = Reason::none;
  step_ = 0;
  log_.emplace(execution.outputs, limits_);
  execution.started = Clock::now();
  execution.status = Execution::Status::running;
  execution.changed.notify();
}

awaitable<void> Kernel::Impl::watch(Execution& execution) {
  bool limited = execution.timeout > 0ms;
  auto deadline = limited ? execution.started + execution.timeout : Clock::now() + kNever;
  auto wake = deadline;
  bool cancelled = false;
  while (!execution.finished()) {
    auto now = Clock::now();
    if (cancelled && !killed_) kill(Reason::closing);
    if (reason_ == Reason::none) {
      if (execution.stop_requested() != Execution::Stop::none)
        reason_ = Reason::asked;
      else if (now >= deadline)
        reason_ = Reason::timeout;
      stop_began_ = wake = now;
    }
    if (reason_ == Reason::none)
      wake = deadline;
    else if (!killed_ && (now >= wake || (step_ == 0 && started_)))
      wake = escalate();
    else if (killed_)
      wake = now + kNever;
    try {
      co_await execution.stop_changed.wait(until(wake));
    } catch (const boost::system::system_error&) {
      cancelled = true;
    }
  }
}

// One step further; returns when the next is due, counted from now, so that a server which stalled
// leaves the cell its time all the same. Before the cell has begun SIGINT would be ignored, so the
// first step waits for that, within limits.
Kernel::Impl::Clock::time_point Kernel::Impl::escalate() {
  auto now = Clock::now();
  if (step_ == 0 && !started_ && now < stop_began_ + kStep) return stop_began_ + kStep;
  ++step_;
  if (step_ <= 3) channel_->interrupt();
  if (step_ == 2) channel_->kill_children();
  if (step_ == 4) kill(reason_);
  return now + (step_ < 4 ? kStep : kNever);
}

awaitable<void> Kernel::Impl::answer(Execution& execution, std::optional<std::string> value) {
  if (current_ != &execution || execution.status != Execution::Status::waiting_input) co_return;
  execution.status = Execution::Status::running;
  execution.input.reset();
  execution.changed.notify();
  json::object reply;
  reply["op"] = "reply";
  reply["id"] = id_;
  if (value) reply["value"] = *value;
  bool sent = co_await send(std::move(reply));
  if (!sent) channel_->kill();
}

// False when the kernel is gone or does not read; then the link cannot be used any more.
awaitable<bool> Kernel::Impl::send(json::object header) {
  try {
    co_await channel_->send(std::move(header));
    co_return true;
  } catch (const boost::system::system_error&) {
    co_return false;
  }
}

// ---- the handle

Kernel::Kernel(asio::any_io_executor executor, std::unique_ptr<KernelChannel> channel,
               OutputLimits limits, Spill* spill)
    : impl_(std::make_shared<Impl>(executor, std::move(channel), limits, spill)) {
  impl_->start();
}

Kernel::~Kernel() { impl_->leave(); }

awaitable<void> Kernel::ready(milliseconds limit) {
  auto impl = impl_;
  co_await impl->ready(limit);
}

awaitable<void> Kernel::resumed(json::object how, milliseconds limit) {
  auto impl = impl_;
  co_await impl->resumed(std::move(how), limit);
}

awaitable<void> Kernel::run(Execution& execution) {
  auto impl = impl_;
  co_await impl->run(execution);
}

awaitable<void> Kernel::answer(Execution& execution, std::optional<std::string> value) {
  auto impl = impl_;
  co_await impl->answer(execution, std::move(value));
}

awaitable<void> Kernel::close() {
  auto impl = impl_;
  co_await impl->close();
}

bool Kernel::alive() const { return impl_->alive(); }

std::string Kernel::background() const { return impl_->background(); }

const json::object& Kernel::greeting() const { return impl_->greeting(); }

}  // namespace sandbox
