#include "tools/session.hpp"

#include <spdlog/spdlog.h>

#include "mcp/error.hpp"
#include "tools/identifiers.hpp"

namespace tools {

namespace asio = boost::asio;
using Status = Execution::Status;

namespace {

constexpr std::size_t kMaxWaiting = 16;
constexpr std::size_t kMaxHistory = 200;
constexpr std::size_t kMaxHistoryBytes = 32 << 20;
constexpr std::chrono::milliseconds kCloseGrace{300};  // for cells to follow their interrupt

std::size_t held_bytes(const sandbox::Output& output) {
  if (auto* text = std::get_if<sandbox::Text>(&output.what)) return text->bytes.size();
  auto* display = std::get_if<sandbox::Display>(&output.what);
  if (!display) return 256;
  std::size_t total = 256;
  for (const auto& member : display->data)
    if (member.value().is_string()) total += member.value().get_string().size();
  for (const auto& binary : display->binary) total += binary.bytes.size();
  return total;
}

std::size_t held_bytes(const Execution& execution) {
  std::size_t total = execution.code.size();
  for (const auto& output : execution.outputs) total += held_bytes(output);
  for (const auto& output : execution.background) total += held_bytes(output);
  return total;
}

void log_defect(std::exception_ptr failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& defect) {
    spdlog::error("a session's task failed: {}", defect.what());
  }
}

}  // namespace

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
  if (lease_.record.generation > 0) lost_because_ = "ended with the server that ran it";
}

Session::State Session::state() const {
  if (starting_) return State::starting;
  if (active_ && active_->execution->stop_requested() != Execution::Stop::none)
    return State::interrupting;
  if (active_) return State::running;
  return has_kernel() ? State::idle : State::cold;
}

std::shared_ptr<Run> Session::submit(Cell cell) {
  if (waiting_ >= kMaxWaiting)
    throw mcp::ToolError("Too many executions wait in this session (" +
                         std::to_string(kMaxWaiting) +
                         "). Wait for them with wait_execution, or use another session.");
  touch();
  auto run = std::make_shared<Run>();
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
  auto wanted = [&] { return execution.stop_requested() == Execution::Stop::none && !closing_; };
  async::Turn::Hold turn;
  try {
    turn = co_await turn_.take();
    --waiting_;
    active_ = run;
    if (wanted()) co_await ensure_kernel(*run);
    if (wanted()) {  // still
      execution.generation = lease_.record.generation;
      co_await sandbox_->run(execution);
    }
  } catch (const sandbox::StartError& refused) {
    execution.cause = refused.what();
  } catch (const boost::system::system_error& failure) {
    if (active_ != run) --waiting_;  // it never got its turn
    execution.cause = closing_ ? "The session was closed." : failure.what();
  } catch (const std::exception& defect) {
    spdlog::error("session {}: an execution failed: {}", handle(), defect.what());
    execution.cause = "An internal error of the server; its log says more.";
  }
  if (active_ == run) active_ = nullptr;
  finish(*run);
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
  execution.ended = std::chrono::steady_clock::now();
  bool lost = !execution.kept && execution.generation == lease_.record.generation;
  if (lost) {
    lost_because_ = execution.cause.empty() ? "had to be killed" : "died: " + execution.cause;
    sandbox_.reset();
  }
  run.bytes = held_bytes(execution);
  touch();
  execution.changed.notify();
}

awaitable<void> Session::answer(Execution& execution, std::optional<std::string> value) {
  bool waits = sandbox_ && active_ && active_->execution.get() == &execution;
  if (waits) co_await sandbox_->answer(execution, std::move(value));
}

awaitable<void> Session::stop_kernel(std::string reason, bool now) {
  if (now && active_) active_->execution->request_stop(Execution::Stop::interrupt);
  auto turn = co_await turn_.take();
  if (!sandbox_) co_return;
  auto ending = std::move(sandbox_);
  lost_because_ = std::move(reason);
  co_await ending->close();
}

sandbox::Files& Session::files() {
  if (sandbox_) return sandbox_->files();
  if (!cold_files_) cold_files_ = backend_.files(spec_);
  return *cold_files_;
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
  auto remove = [this] { store_.remove(std::move(lease_)); };
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
