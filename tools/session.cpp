#include "tools/session.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "mcp/error.hpp"
#include "tools/identifiers.hpp"

namespace tools {

namespace asio = boost::asio;
using Status = Execution::Status;

namespace {

constexpr std::size_t kMaxWaiting = 16;
constexpr std::chrono::milliseconds kCloseGrace{300};    // for cells to follow their interrupt
constexpr std::chrono::milliseconds kFilesTurn{45'000};  // clients cut calls after a minute

awaitable<void> until_stopped(Execution& execution) {
  while (execution.stop_requested() == Execution::Stop::none)
    co_await execution.stop_changed.wait();
}

void log_defect(std::exception_ptr failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& defect) {
    spdlog::error("a session's task failed: {}", defect.what());
  }
}

}  // namespace

std::string title(const sandbox::SessionRecord& record) {
  return record.id + (record.name.empty() ? "" : " \"" + record.name + "\"");
}

Session::Session(SessionServices services, sandbox::SandboxSpec spec, sandbox::SessionLease lease)
    : services_(std::move(services)),
      spec_(std::move(spec)),
      lease_(std::move(lease)),
      images_(services_.pool, services_.store, lease_, services_.checkpoints),
      executed_(services_.executor, services_.pool, lease_.history()),
      turn_(services_.executor),
      tasks_(services_.executor, log_defect) {
  spec_.name = lease_.record.id;
  spec_.workspace = lease_.workspace();
  spec_.directory = lease_.directory;
  bool had_kernel = lease_.record.generation > 0 || lease_.record.ended;
  if (had_kernel && !images_.current())
    lost_because_ =
        lease_.record.ended.value_or("ended with the server that ran it, or for lack of use");
}

Session::State Session::state() const {
  if (starting_) return State::starting;
  if (active_ && active_->execution->stop_requested() != Execution::Stop::none)
    return State::interrupting;
  if (active_) return State::running;
  if (hibernating_) return State::hibernating;
  if (has_kernel()) return State::idle;
  return images_.current() ? State::hibernated : State::cold;
}

std::shared_ptr<Run> Session::submit(Cell cell) {
  if (closing_) throw mcp::ToolError("The session was closed. Nothing was run.");
  std::size_t bytes = cell.code.size() + (cell.stdin_text ? cell.stdin_text->size() : 0);
  if (waiting_ >= kMaxWaiting || !runs_.has_room(bytes))
    throw mcp::ToolError("Too many executions wait in this session (at most " +
                         std::to_string(kMaxWaiting) +
                         ", with 64 MiB of code and stdin). Nothing was run. Wait for them with "
                         "wait_execution, or use another session.");
  touch();
  auto run = std::make_shared<Run>();
  run->bytes = bytes;
  run->origin = std::move(cell.origin);
  run->execution =
      std::make_shared<Execution>(services_.executor, "e-" + random_id(), std::move(cell.code));
  run->execution->stdin_text = std::move(cell.stdin_text);
  run->execution->timeout = cell.timeout;
  run->execution->can_ask = cell.can_ask;
  run->execution->asked = std::chrono::steady_clock::now();
  runs_.add(run);
  ++waiting_;
  tasks_.spawn(this->run(run));
  return run;
}

// Owns the execution's way from queued to finished; whatever happens, it ends finished.
awaitable<void> Session::run(std::shared_ptr<Run> run) {
  Execution& execution = *run->execution;
  std::optional<async::Turn::Hold> turn;
  bool waits = true;
  try {
    auto taking = turn_.take();
    auto stopped = until_stopped(execution);
    turn = co_await async::unless(std::move(stopped), std::move(taking));
    waits = false;
    --waiting_;
    if (turn) {
      active_ = run;
      co_await perform(run);
    }
  } catch (const sandbox::StartError& refused) {
    execution.cause = refused.what();
  } catch (const boost::system::system_error& failure) {
    execution.cause = closing_ ? "The session was closed." : failure.what();
  } catch (const std::exception& defect) {
    spdlog::error("session {}: an execution failed: {}", handle(), defect.what());
    execution.cause = "An internal error of the server; its log says more.";
  }
  if (waits) --waiting_;
  if (active_ == run) active_ = nullptr;
  finish(*run);
  // Now rather than before the next cell, whose caller would wait for it.
  if (turn && !closing_ && has_kernel() && images_.due()) co_await checkpoint();
}

awaitable<void> Session::perform(std::shared_ptr<Run> run) {
  Execution& execution = *run->execution;
  auto wanted = [&] { return execution.stop_requested() == Execution::Stop::none && !closing_; };
  if (wanted()) co_await ensure_kernel(run->announcements);
  if (!wanted()) co_return;
  execution.generation = lease_.record.generation;
  if (std::string before = std::exchange(background_, {}); !before.empty())
    execution.background.push_back({sandbox::Text{sandbox::StreamName::out, std::move(before)}});
  co_await sandbox_->run(execution);
}

void Session::finish(Run& run) {
  Execution& execution = *run.execution;
  if (!execution.finished()) execution.status = Status::abandoned;
  bool unread = execution.status == Status::abandoned ||
                execution.stop_requested() == Execution::Stop::cancelled;
  if (unread) {  // the next result says it instead
    pending_.insert(pending_.begin(), run.announcements.begin(), run.announcements.end());
    run.announcements.clear();
  }
  execution.ended = std::chrono::steady_clock::now();
  run.rescue = rescue(run);
  if (execution.started != std::chrono::steady_clock::time_point()) {
    last_execution_ = last_with(execution);
    images_.worked(execution.ended - execution.started);
    not_hibernated_.clear();
    tasks_.spawn(executed_.add(run.execution, last_execution_));
  }
  bool lost = !execution.kept && execution.generation == lease_.record.generation;
  if (lost && execution.unreachable)
    lose_kernel("could not be reached any more: " + execution.cause);
  else if (lost)
    lose_kernel(execution.status == Execution::Status::kernel_died
                    ? "died: " + execution.cause
                    : "did not stop when interrupted and was killed");
  report(run);
  execution.stdin_text.reset();  // nobody reads it again
  run.measure();
  touch();
  execution.changed.notify();
}

// In[n] once the execution counts: one that killed its kernel may never have said its number.
int Session::last_with(const Execution& execution) const {
  return std::max(execution.number, last_execution_ + (execution.number ? 0 : 1));
}

// Its readers may be here before finish() is.
std::uint64_t Session::memory() const {
  std::uint64_t own = sandbox_ ? sandbox_->memory() : 0;
  return own > 0 ? own : spec_.limits.memory;
}

std::string Session::rescue(const Run& run) const {
  const Execution& execution = *run.execution;
  if (!run.rescue.empty() || !execution.finished() || execution.kept) return run.rescue;
  if (!images_.record() || execution.generation != lease_.record.generation) return {};
  return "The next call goes on from the checkpoint " +
         after_execution(images_.record()->execution) + ": " +
         lost_executions(last_with(execution));
}

void Session::report(const Run& run) const {
  if (!services_.observer) return;
  const Execution& execution = *run.execution;
  bool began = execution.started != std::chrono::steady_clock::time_point();
  ExecutionReport report;
  report.principal = lease_.record.principal;
  report.session = handle();
  report.execution = execution.id;
  report.origin = run.origin;
  report.number = execution.number;
  report.code = execution.code;
  report.status = execution.status;
  report.cause = execution.cause;
  if (began)
    report.duration =
        std::chrono::duration_cast<std::chrono::milliseconds>(execution.ended - execution.started);
  report.output_bytes = execution.bytes_out;
  services_.observer->execution_ended(report);
}

void Session::file_written(const std::string& path) const {
  if (services_.observer) services_.observer->file_written(lease_.record.principal, handle(), path);
}

awaitable<void> Session::answer(Execution& execution, std::optional<std::string> value) {
  bool waits = sandbox_ && active_ && active_->execution.get() == &execution &&
               execution.status == Status::waiting_input;
  auto sandbox = sandbox_;
  if (waits) co_await sandbox->answer(execution, std::move(value));
}

awaitable<std::shared_ptr<sandbox::Files>> Session::files() {
  if (!sandbox_ && services_.backend.capabilities().files_in_sandbox) {
    try {
      auto turn = co_await this->turn(kFilesTurn);
      co_await kernel();
    } catch (const sandbox::StartError& refused) {
      throw sandbox::FileError(std::string("The session's files cannot be reached: ") +
                               refused.what());
    }
  }
  if (sandbox_) co_return std::shared_ptr<sandbox::Files>(sandbox_, &sandbox_->files());
  try {
    if (!cold_files_) cold_files_ = services_.backend.files(spec_);
  } catch (const std::system_error& failure) {
    throw sandbox::FileError("The session's files cannot be reached: " + failure.code().message() +
                             ".");
  }
  co_return cold_files_;
}

std::optional<sandbox::Usage> Session::usage() const {
  if (!has_kernel()) return std::nullopt;
  return sandbox_->usage();
}

awaitable<void> Session::close(bool keep, std::chrono::milliseconds freeze_limit) {
  closing_ = true;
  *no_checkpoint_ = true;
  runs_.stop(Execution::Stop::cancelled);
  bool ended = co_await async::within(kCloseGrace, tasks_.join());
  if (!ended) {
    tasks_.cancel();
    co_await tasks_.join();
  }
  if (keep && freeze_limit.count() > 0) co_await hibernate(freeze_limit, true);
  bool goes_on = false;
  if (keep && has_kernel()) goes_on = co_await sandbox_->leave();
  if (goes_on) sandbox_.reset();
  if (!not_hibernated_.empty() && has_kernel())
    lost_because_ = "could not be put on disk when the server ended (" + not_hibernated_ + ")";
  if (!lost_because_.empty()) lease_.record.ended = lost_because_;
  co_await end_kernel("the session was closed");
  cold_files_.reset();
  if (keep) {
    co_await images_.save();
    co_return;
  }
  co_await services_.backend.forget(spec_);
  auto remove = [this] { services_.store.remove(lease_); };
  co_await async::on_pool(services_.pool, remove);
}

}  // namespace tools
