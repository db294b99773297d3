#include "tools/session.hpp"

#include <spdlog/spdlog.h>

#include "mcp/error.hpp"
#include "tools/identifiers.hpp"

namespace tools {

namespace asio = boost::asio;
using Status = Execution::Status;

namespace {

constexpr std::size_t kMaxWaiting = 16;
constexpr std::size_t kMaxWaitingBytes = 64 << 20;  // of their code and stdin
constexpr std::size_t kMaxHistory = 200;
constexpr std::size_t kMaxHistoryBytes = 32 << 20;
constexpr std::chrono::milliseconds kCloseGrace{300};  // for cells to follow their interrupt

std::size_t held_bytes(const Execution& execution) {
  std::size_t total = execution.code.size();
  if (execution.stdin_text) total += execution.stdin_text->size();
  for (const auto& output : execution.outputs) total += sandbox::held_bytes(output);
  for (const auto& output : execution.background) total += sandbox::held_bytes(output);
  return total;
}

// What the executions that have not finished hold already.
std::size_t waiting_bytes(const std::deque<std::shared_ptr<Run>>& history) {
  std::size_t total = 0;
  for (const auto& run : history)
    if (!run->execution->finished()) total += run->bytes;
  return total;
}

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

Session::Session(asio::any_io_executor executor, asio::thread_pool& pool, sandbox::Backend& backend,
                 sandbox::SessionStore& store, sandbox::SandboxSpec spec,
                 sandbox::SessionLease lease, std::function<void()> admit)
    : executor_(executor),
      pool_(pool),
      backend_(backend),
      store_(store),
      spec_(std::move(spec)),
      admit_(std::move(admit)),
      lease_(std::move(lease)),
      turn_(executor),
      tasks_(executor, log_defect) {
  spec_.name = lease_.record.id;
  spec_.workspace = lease_.workspace();
  if (lease_.record.generation > 0)
    lost_because_ = "ended with the server that ran it, or for lack of use";
}

Session::State Session::state() const {
  if (starting_) return State::starting;
  if (active_ && active_->execution->stop_requested() != Execution::Stop::none)
    return State::interrupting;
  if (active_) return State::running;
  return has_kernel() ? State::idle : State::cold;
}

std::shared_ptr<Run> Session::submit(Cell cell) {
  if (closing_) throw mcp::ToolError("The session was closed. Nothing was run.");
  std::size_t bytes = cell.code.size() + (cell.stdin_text ? cell.stdin_text->size() : 0);
  if (waiting_ >= kMaxWaiting || waiting_bytes(history_) + bytes > kMaxWaitingBytes)
    throw mcp::ToolError("Too many executions wait in this session (at most " +
                         std::to_string(kMaxWaiting) +
                         ", with 64 MiB of code and stdin). Nothing was run. Wait for them with "
                         "wait_execution, or use another session.");
  touch();
  auto run = std::make_shared<Run>();
  run->bytes = bytes;
  run->execution = std::make_shared<Execution>(executor_, "e-" + random_id(), std::move(cell.code));
  run->execution->stdin_text = std::move(cell.stdin_text);
  run->execution->timeout = cell.timeout;
  run->execution->can_ask = cell.can_ask;
  run->execution->asked = std::chrono::steady_clock::now();
  history_.push_back(run);
  forget_old_runs();
  ++waiting_;
  tasks_.spawn(this->run(run));
  return run;
}

std::shared_ptr<Run> Session::find(const std::string& execution_id) const {
  for (const auto& run : history_)
    if (run->execution->id == execution_id) return run;
  return nullptr;
}

std::shared_ptr<Run> Session::find(int number) const {
  for (auto run = history_.rbegin(); run != history_.rend(); ++run)
    if ((*run)->execution->number == number) return *run;
  return nullptr;
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
}

awaitable<void> Session::perform(std::shared_ptr<Run> run) {
  Execution& execution = *run->execution;
  auto wanted = [&] { return execution.stop_requested() == Execution::Stop::none && !closing_; };
  if (wanted()) co_await ensure_kernel(*run);
  if (!wanted()) co_return;
  execution.generation = lease_.record.generation;
  co_await sandbox_->run(execution);
}

awaitable<void> Session::ensure_kernel(Run& run) {
  if (sandbox_ && !sandbox_->alive()) {
    sandbox_.reset();
    if (lost_because_.empty()) lost_because_ = "ended between two executions";
  }
  if (!sandbox_) admit_();
  run.announcements = std::exchange(pending_, {});
  if (sandbox_) co_return;
  starting_ = true;
  std::unique_ptr<sandbox::Sandbox> started;
  try {
    started = co_await backend_.start(spec_);
  } catch (...) {
    starting_ = false;
    pending_ = std::move(run.announcements);
    throw;
  }
  starting_ = false;
  sandbox_ = std::move(started);
  ++lease_.record.generation;
  spdlog::info("session {}: kernel {} started ({})", handle(), lease_.record.generation,
               sandbox_->description());
  if (!lost_because_.empty())
    run.announcements.push_back("A new kernel was started: the last one " +
                                std::exchange(lost_because_, {}) +
                                ". Variables from before are gone; files in /workspace are kept.");
  co_await save();
}

// The record lets another process tell what became of this session, if this one dies.
awaitable<void> Session::save() {
  lease_.record.used = now_seconds();
  auto write = [this] { store_.save(lease_); };
  try {
    co_await async::on_pool(pool_, write);
  } catch (const sandbox::StoreError& failure) {
    spdlog::warn("session {}: {}", handle(), failure.what());
  }
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
  bool lost = !execution.kept && execution.generation == lease_.record.generation;
  if (lost) {
    lost_because_ = execution.status == Execution::Status::kernel_died
                        ? "died: " + execution.cause
                        : "did not stop when interrupted and was killed";
    sandbox_.reset();
  }
  execution.stdin_text.reset();  // nobody reads it again
  run.bytes = held_bytes(execution);
  touch();
  execution.changed.notify();
}

awaitable<void> Session::answer(Execution& execution, std::optional<std::string> value) {
  bool waits = sandbox_ && active_ && active_->execution.get() == &execution &&
               execution.status == Status::waiting_input;
  auto sandbox = sandbox_;
  if (waits) co_await sandbox->answer(execution, std::move(value));
}

awaitable<void> Session::stop_kernel(std::string reason, bool now) {
  if (now)
    for (const auto& run : history_) run->execution->request_stop(Execution::Stop::interrupt);
  auto turn = co_await turn_.take();
  if (!sandbox_) {
    if (!lost_because_.empty()) lost_because_ = std::move(reason);  // killed as it did not stop
    co_return;
  }
  auto ending = std::move(sandbox_);
  lost_because_ = std::move(reason);
  co_await ending->close();
}

std::shared_ptr<sandbox::Files> Session::files() {
  if (sandbox_) return std::shared_ptr<sandbox::Files>(sandbox_, &sandbox_->files());
  try {
    if (!cold_files_) cold_files_ = backend_.files(spec_);
  } catch (const std::system_error& failure) {
    throw sandbox::FileError("The session's files cannot be reached: " + failure.code().message() +
                             ".");
  }
  return cold_files_;
}

std::optional<sandbox::Usage> Session::usage() const {
  if (!has_kernel()) return std::nullopt;
  return sandbox_->usage();
}

awaitable<void> Session::close(bool keep_files) {
  closing_ = true;
  for (const auto& run : history_) run->execution->request_stop(Execution::Stop::cancelled);
  bool ended = co_await async::within(kCloseGrace, tasks_.join());
  if (!ended) {
    tasks_.cancel();
    co_await tasks_.join();
  }
  if (sandbox_) co_await sandbox_->close();
  sandbox_.reset();
  cold_files_.reset();
  if (keep_files) {
    co_await save();
    co_return;
  }
  auto remove = [this] { store_.remove(lease_); };
  co_await async::on_pool(pool_, remove);
}

void Session::forget_old_runs() {
  std::size_t bytes = 0;
  for (const auto& run : history_) bytes += run->bytes;
  while (history_.size() > kMaxHistory || bytes > kMaxHistoryBytes) {
    if (history_.size() == 1 || !history_.front()->execution->finished()) return;
    bytes -= history_.front()->bytes;
    history_.pop_front();
  }
}

}  // namespace tools
