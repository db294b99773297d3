#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "async/async.hpp"
#include "async/task_group.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/session_store.hpp"

namespace tools {

using async::awaitable;
using sandbox::Execution;

// One execution in its session, and what its result has to say about the session first.
struct Run {
  std::shared_ptr<Execution> execution;
  std::vector<std::string> announcements;  // "New session …", "A new kernel was started: …"
  std::size_t bytes = 0;                   // what its code and outputs hold
};

struct Cell {
  std::string code;
  std::optional<std::string> stdin_text;
  std::chrono::milliseconds timeout{0};
  bool can_ask = false;
};

// How a session is named to its owner: the handle, and the name that was given.
std::string title(const sandbox::SessionRecord& record);

// What a handle names: one sandbox with its persistent kernel, a workspace and a history. Runs one
// execution at a time, the others wait their turn. Outlives calls and connections.
//
// The kernel is started by the first execution and can end (death, restart, idle) and be started
// again: `generation` counts the starts, and every claim about kept or lost variables comes from
// it.
class Session {
 public:
  enum class State { cold, starting, idle, running, interrupting };

  // The pool, the backend and the store outlive the session. `admit` throws StartError when no
  // further kernel may run.
  Session(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool,
          sandbox::Backend& backend, sandbox::SessionStore& store, sandbox::SandboxSpec spec,
          sandbox::SessionLease lease, std::function<void()> admit);

  const std::string& handle() const { return lease_.record.id; }
  const sandbox::SessionRecord& record() const { return lease_.record; }
  std::filesystem::path workspace() const { return lease_.workspace(); }
  const sandbox::Limits& limits() const { return spec_.limits; }
  State state() const;
  bool has_kernel() const { return sandbox_ != nullptr && sandbox_->alive(); }
  bool takes_kernel() const { return starting_ || has_kernel(); }  // what the limits count
  std::chrono::steady_clock::time_point last_used() const { return last_used_; }
  void touch() { last_used_ = std::chrono::steady_clock::now(); }

  // Adds a line that the next result says first.
  void announce(std::string line) { pending_.push_back(std::move(line)); }

  // Queues a cell and returns at once. Throws ToolError when the queue is full, or after close().
  // Asked to stop while it waits, it ends at once and never starts.
  std::shared_ptr<Run> submit(Cell cell);
  std::shared_ptr<Run> find(const std::string& execution_id) const;
  std::shared_ptr<Run> find(int number) const;
  std::shared_ptr<Run> active() const { return active_; }  // null when nothing runs
  std::size_t waiting() const { return waiting_; }
  // All that are still remembered, oldest first; bounded in number and bytes.
  const std::deque<std::shared_ptr<Run>>& history() const { return history_; }

  // Gives a cell that waits for input its answer; nothing happens to one that does not wait.
  awaitable<void> answer(Execution& execution, std::optional<std::string> value);

  // Ends the kernel: after all cells or, if `now`, by stopping the running one and those that wait.
  // The next result tells the reason: "the last one <reason>".
  awaitable<void> stop_kernel(std::string reason, bool now);

  // Works with and without a kernel. What is returned may be used after that kernel's end. Throws
  // FileError when the directory is gone.
  std::shared_ptr<sandbox::Files> files();
  std::optional<sandbox::Usage> usage() const;

  // Stops what runs, ends the kernel, and gives up the directory: kept if `keep_files`, else
  // deleted. Takes at most about two seconds, and must not be cancelled: its tasks refer to it.
  // Afterwards a session runs nothing more.
  awaitable<void> close(bool keep_files);

 private:
  awaitable<void> run(std::shared_ptr<Run> run);
  awaitable<void> perform(std::shared_ptr<Run> run);
  awaitable<void> ensure_kernel(Run& run);
  void finish(Run& run);
  awaitable<void> save();
  void forget_old_runs();

  boost::asio::any_io_executor executor_;
  boost::asio::thread_pool& pool_;
  sandbox::Backend& backend_;
  sandbox::SessionStore& store_;
  sandbox::SandboxSpec spec_;
  std::function<void()> admit_;
  sandbox::SessionLease lease_;
  std::shared_ptr<sandbox::Files> cold_files_;
  std::shared_ptr<sandbox::Sandbox> sandbox_;  // shared with file operations that are under way
  async::Turn turn_;
  async::TaskGroup tasks_;
  std::deque<std::shared_ptr<Run>> history_;
  std::shared_ptr<Run> active_;
  std::size_t waiting_ = 0;
  bool starting_ = false;
  bool closing_ = false;
  std::vector<std::string> pending_;
  std::string
      lost_because_;  // what became of the last kernel; empty while one runs or none ever did
  std::chrono::steady_clock::time_point last_used_ = std::chrono::steady_clock::now();
};

}  // namespace tools
