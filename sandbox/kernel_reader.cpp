#include <stdexcept>

#include "sandbox/kernel_impl.hpp"
#include "schemas/codec.hpp"

namespace sandbox {

using namespace std::chrono_literals;

namespace {

// How long a dead kernel may take to be gone by itself after its link closed.
constexpr auto kNaturalEnd = 500ms;
// What runs in the background may print without end, in each session: so fast is it read at most,
// 1 MiB and then a pause, and then it has to wait.
constexpr std::size_t kIdleBurst = 1 << 20;
constexpr auto kIdlePause = 25ms;

}  // namespace

awaitable<void> Kernel::Impl::read(std::shared_ptr<Impl> self) {
  try {
    co_await self->read_all();
  } catch (const std::exception& failure) {
    self->channel_->kill();
    self->bury(std::string("the link to it failed: ") + failure.what());
  }
}

awaitable<void> Kernel::Impl::read_all() {
  while (phase_ != Phase::dead) {
    KernelEvent event = co_await channel_->next();
    if (auto* piece = std::get_if<StreamBytes>(&event))
      co_await take(std::move(*piece));
    else if (auto* frame = std::get_if<Frame>(&event))
      co_await take(std::move(*frame));
    else if (auto* violation = std::get_if<Violation>(&event))
      co_await die(std::move(violation->what));
    else
      co_await die(std::move(broken_));
  }
}

awaitable<void> Kernel::Impl::take(StreamBytes piece) {
  StreamName stream = piece.is_stderr ? StreamName::err : StreamName::out;
  if (!current_ || piece.is_early) {
    background_log_->text(stream, piece.bytes);
    if (current_) co_return;
    idle_bytes_ += piece.bytes.size();
    if (idle_bytes_ < kIdleBurst) co_return;
    idle_bytes_ = 0;
    co_await async::sleep_for(kIdlePause);
    co_return;
  }
  current_->bytes_out += piece.bytes.size();
  std::string to_spill;
  if (spill_ && log_->text_bytes() + piece.bytes.size() > limits_.head_bytes) {
    if (!spilling_) to_spill = log_->whole();
    spilling_ = true;
    to_spill += piece.bytes;
  }
  log_->text(stream, piece.bytes);
  current_->changed.notify();
  if (!to_spill.empty()) co_await spill_->append(*current_, std::move(to_spill));
}

awaitable<void> Kernel::Impl::take(Frame frame) {
  std::optional<Message> message;
  std::string problem;
  try {
    message = decode_message(std::move(frame));
  } catch (const schemas::DecodeError& wrong) {
    problem = std::string("a message that is wrong: ") + wrong.what();
  }
  bool early = phase_ == Phase::starting && message && !std::holds_alternative<Ready>(*message);
  bool again = phase_ == Phase::ready && message && std::holds_alternative<Ready>(*message);
  if (early || again) problem = "a message out of order";
  const auto* question = message ? std::get_if<Asked>(&*message) : nullptr;
  if (question && current_ && question->id == id_ && !current_->can_ask)
    problem = "a question that it was told not to ask";
  if (!problem.empty()) {
    co_await die(std::move(problem));
  } else if (auto* done = std::get_if<Done>(&*message)) {
    co_await on_done(*done);
  } else if (auto* ready = std::get_if<Ready>(&*message)) {
    on(std::move(*ready));
  } else if (auto* started = std::get_if<Started>(&*message)) {
    on(std::move(*started));
  } else if (auto* shown = std::get_if<Shown>(&*message)) {
    on(std::move(*shown));
  } else if (auto* asked = std::get_if<Asked>(&*message)) {
    on(std::move(*asked));
  } else if (auto* failed = std::get_if<Failed>(&*message)) {
    on(std::move(*failed));
  }
}

void Kernel::Impl::on(Ready message) {
  greeting_ = std::move(message.greeting);
  forget_background();  // what the start printed is of no use to a cell
  phase_ = Phase::ready;
  phase_changed_.notify();
}

void Kernel::Impl::on(Started message) {
  if (!current_ || message.id != id_) return;
  started_ = true;
  hand_over_background();
  current_->number = message.execution_count;
  current_->changed.notify();
  current_->stop_changed.notify();
}

void Kernel::Impl::on(Shown message) {
  if (!current_ || message.id != id_) return;
  log_->display(std::move(message.display), message.update);
  current_->changed.notify();
}

void Kernel::Impl::on(Asked message) {
  if (!current_ || message.id != id_) return;
  current_->input = std::move(message.request);
  current_->status = Execution::Status::waiting_input;
  current_->changed.notify();
}

void Kernel::Impl::on(Failed message) {
  if (!current_ || message.id != id_) return;
  log_->error(std::move(message.error));
  current_->changed.notify();
}

awaitable<void> Kernel::Impl::on_done(Done message) {
  using Status = Execution::Status;
  if (!current_ || message.id != id_) co_return;
  if (message.execution_count > 0) current_->number = message.execution_count;
  bool interrupted = step_ > 0;
  Status status = Status::ok;
  if (!message.ok) status = interrupted ? stopped_status() : Status::raised;
  bool has_error = !current_->outputs.empty() &&
                   std::holds_alternative<PythonError>(current_->outputs.back().what);
  if (status == Status::raised && !has_error) {
    PythonError unknown{"Error", "the kernel reported a failure without saying which", {}};
    log_->error(std::move(unknown));
  }
  if (message.ok && interrupted)
    current_->notes.push_back("it was asked to stop, but came to its end without an error");
  co_await ended(status);
}

// ---- ends

Execution::Status Kernel::Impl::stopped_status() const {
  return reason_ == Reason::timeout ? Execution::Status::timed_out : Execution::Status::interrupted;
}

awaitable<void> Kernel::Impl::ended(Execution::Status status) {
  if (spilling_ && spill_) {
    std::string path = co_await spill_->finish(*current_);
    current_->full_output = std::move(path);
  }
  std::uint64_t kills = channel_->memory_kills();
  if (kills > memory_kills_ && phase_ != Phase::dead)
    current_->notes.push_back(
        "a process that ran beside the kernel was killed: the sandbox's memory limit was reached");
  memory_kills_ = kills;
  settle(status);
}

void Kernel::Impl::settle(Execution::Status status) {
  if (!started_) hand_over_background();
  Execution& execution = *std::exchange(current_, nullptr);
  log_->finish();
  log_.reset();
  execution.input.reset();
  execution.kept = phase_ != Phase::dead;
  if (!execution.kept) execution.cause = cause_;
  execution.ended = Clock::now();
  execution.status = status;
  execution.changed.notify();
  execution.stop_changed.notify();
}

// The kernel is gone, or has to go because it is `broken`. `current_` stays until its end is known.
awaitable<void> Kernel::Impl::die(std::string broken) {
  std::optional<Exit> exit;
  if (broken.empty()) {
    auto waiting = channel_->exit();
    exit = co_await async::within(kNaturalEnd, std::move(waiting));
    if (!exit) broken = "nothing more, for it closed its link to the server";
  }
  if (!exit) {
    channel_->kill();
    exit = co_await channel_->exit();
  }
  if (killed_)
    cause_ =
        reason_ == Reason::closing ? "its session was closed" : "it did not stop and was killed";
  else
    cause_ = broken.empty() ? exit->cause : "it sent " + broken + ", and was killed";
  phase_ = Phase::dead;
  bool stopped = killed_ && reason_ != Reason::none;
  if (current_) {
    current_->unreachable = exit->unreachable;
    Execution::Status status = stopped ? stopped_status() : Execution::Status::kernel_died;
    co_await ended(status);
  }
  phase_changed_.notify();
}

// The same without a wait, when nothing else is possible any more.
void Kernel::Impl::bury(std::string cause) {
  if (phase_ != Phase::dead) cause_ = std::move(cause);
  phase_ = Phase::dead;
  if (current_) settle(Execution::Status::kernel_died);
  phase_changed_.notify();
}

}  // namespace sandbox
