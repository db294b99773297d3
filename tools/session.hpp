#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/async.hpp"
#include "async/task_group.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/session_store.hpp"
#include "tools/observer.hpp"
#include "tools/runs.hpp"
#include "tools/session_history.hpp"
#include "tools/session_images.hpp"

namespace tools {

using async::awaitable;
using sandbox::Execution;

struct Cell {
  std::string code;
  std::optional<std::string> stdin_text;
  std::chrono::milliseconds timeout{0};
  bool can_ask = false;
  std::string origin;  // what the transport calls the request, for the log; may be empty
};

// How a session is named to its owner: the handle, and the name that was given.
std::string title(const sandbox::SessionRecord& record);

// What sessions work with. All of it outlives them.
struct SessionServices {
  boost::asio::any_io_executor executor;
  boost::asio::thread_pool& pool;
  sandbox::Backend& backend;
  sandbox::SessionStore& store;
  Observer* observer = nullptr;  // may be null
  CheckpointPolicy checkpoints;
  std::function<void()> admit;  // throws StartError when no further kernel may run
};

// What a handle names: one sandbox with its persistent kernel, a workspace and a history. Runs one
// execution at a time, the others wait their turn. Outlives calls and connections.
//
// The kernel is started by the first execution. It can be put on disk and come back as it was; it
// can end (death, restart, idle) and be restored to a checkpoint or started anew. `generation`
// counts how often variables began or went back: every claim about kept or lost ones comes from it.
class Session {
 public:
  // cold: neither a kernel nor its state. hibernated: its state is on disk.
  enum class State { cold, starting, idle, running, interrupting, hibernating, hibernated };

  Session(SessionServices services, sandbox::SandboxSpec spec, sandbox::SessionLease lease);

  const std::string& handle() const { return lease_.record.id; }
  const sandbox::SessionRecord& record() const { return lease_.record; }
  std::filesystem::path workspace() const { return lease_.workspace(); }
  const sandbox::Limits& limits() const { return spec_.limits; }
  std::uint64_t memory() const;  // bytes that its sandbox has
  State state() const;
  bool has_kernel() const { return sandbox_ != nullptr && sandbox_->alive(); }
  bool takes_kernel() const { return starting_ || has_kernel(); }  // what the limits count
  // Whether its variables are there, in a kernel or on disk.
  bool has_variables() const { return has_kernel() || images_.current(); }
  std::chrono::steady_clock::time_point last_used() const { return last_used_; }
  void touch() { last_used_ = std::chrono::steady_clock::now(); }

  // Adds a line that the next result says first.
  void announce(std::string line) { pending_.push_back(std::move(line)); }

  // Queues a cell and returns at once. Throws ToolError when the queue is full, or after close().
  // Asked to stop while it waits, it ends at once and never starts.
  std::shared_ptr<Run> submit(Cell cell);
  const Runs& runs() const { return runs_; }
  // Of an execution that ended its kernel: what the next one goes on from; empty when from nothing.
  std::string rescue(const Run& run) const;
  std::shared_ptr<Run> active() const { return active_; }  // null when nothing runs
  std::size_t waiting() const { return waiting_; }
  // On disk, with those that earlier kernels and processes ran.
  SessionHistory& executed() { return executed_; }

  // Gives a cell that waits for input its answer; nothing happens to one that does not wait.
  awaitable<void> answer(Execution& execution, std::optional<std::string> value);

  // Ends the kernel after all cells. The next result tells the reason: "the last one <reason>".
  awaitable<void> stop_kernel(std::string reason);
  // Ends it by stopping the cell that runs and those that wait, and forgets its state on disk.
  awaitable<void> restart(std::string reason);
  // Puts an idle kernel on disk, within `limit`. False when there is none, or it cannot be frozen:
  // then it goes on running, and the reason is in not_hibernated() until it is used again.
  awaitable<bool> hibernate(std::chrono::milliseconds limit, bool allow_lost);
  const std::string& not_hibernated() const { return not_hibernated_; }

  // For what must not meet an execution: while it is held, none runs. Throws ToolError when the one
  // that runs does not end within `limit`, or the session is closed.
  awaitable<async::Turn::Hold> turn(std::chrono::milliseconds limit);
  // With the turn held: the sandbox with its kernel, brought up if need be.
  awaitable<std::shared_ptr<sandbox::Sandbox>> kernel();
  int last_execution() const { return last_execution_; }  // In[n] of the kernel; 0: none yet
  // With the turn held: becomes what the image of `execution` has in memory, and what `fill` puts
  // into an empty directory as files. Throws what the backend or `fill` throws; memory and files
  // are as they were then.
  awaitable<void> become(std::filesystem::path image, sandbox::Thaw why, int execution,
                         std::function<void(const std::filesystem::path&)> fill);

  // Works with and without a kernel (which is brought up where files cannot be reached otherwise).
  // What is returned may be used after that kernel's end. Throws FileError when the files cannot be
  // had.
  awaitable<std::shared_ptr<sandbox::Files>> files();
  // To be told by whoever has brought in a file with them.
  void file_written(const std::string& path) const;
  std::optional<sandbox::Usage> usage() const;

  // Stops what runs, and gives up the directory. It is kept if `keep`, with the kernel's state if
  // that can be frozen within `freeze_limit`; else deleted. Takes at most about two seconds
  // besides, and must not be cancelled: its tasks refer to it. Afterwards a session runs nothing
  // more.
  awaitable<void> close(bool keep, std::chrono::milliseconds freeze_limit);

 private:
  awaitable<void> run(std::shared_ptr<Run> run);
  awaitable<void> perform(std::shared_ptr<Run> run);
  awaitable<void> checkpoint();
  void finish(Run& run);
  void report(const Run& run) const;

  // Of the kernel, with the turn held (session_kernel.cpp).
  awaitable<void> ensure_kernel(std::vector<std::string>& announcements);
  awaitable<std::string> bring_up();  // what there is to say about it
  awaitable<std::string> adopt();
  awaitable<std::string> wake();
  awaitable<std::string> start_anew(std::string not_restored);
  awaitable<void> end_kernel(std::string cause);
  void lose_kernel(std::string because);
  std::string lost_executions(std::optional<int> last) const;
  int last_with(const Execution& execution) const;

  SessionServices services_;
  sandbox::SandboxSpec spec_;
  sandbox::SessionLease lease_;
  SessionImages images_;
  SessionHistory executed_;
  std::shared_ptr<sandbox::Files> cold_files_;
  std::shared_ptr<sandbox::Sandbox> sandbox_;  // shared with file operations that are under way
  async::Turn turn_;
  async::TaskGroup tasks_;
  Runs runs_;
  std::shared_ptr<Run> active_;
  std::size_t waiting_ = 0;
  bool starting_ = false;
  bool hibernating_ = false;
  std::string background_;  // printed before the kernel was put on disk, not shown yet
  bool closing_ = false;
  std::shared_ptr<std::atomic<bool>> no_checkpoint_ = std::make_shared<std::atomic<bool>>(false);
  int last_execution_ = 0;
  std::vector<std::string> pending_;
  // What became of the last kernel; empty while one runs, none ever did, or it is on disk.
  std::string lost_because_;
  bool knows_last_execution_ = false;  // false: a process that is gone ran it
  std::string not_hibernated_;
  std::chrono::steady_clock::time_point last_used_ = std::chrono::steady_clock::now();
};

}  // namespace tools
