#pragma once

#include <memory>
#include <string>

#include "async/task_group.hpp"
#include "sandbox/execution.hpp"
#include "sandbox/kernel_channel.hpp"

namespace sandbox {

// Bounds on what one execution may leave in the server's memory.
struct OutputLimits {
  std::size_t head_bytes = 16 << 10;     // of text, kept from the beginning; past it a file has all
  std::size_t tail_bytes = 64 << 10;     // kept from the end, once the head is full
  std::size_t displays = 100;            // kept; the rest is counted
  std::size_t display_bytes = 16 << 20;  // all displays of an execution together
  std::size_t background_bytes = 32 << 10;
};

// Takes an execution's whole text once its head is full (a file in the workspace).
class Spill {
 public:
  virtual ~Spill() = default;
  // Appends; drops silently past its cap or once writing failed. Never throws.
  virtual awaitable<void> append(const Execution& execution, std::string bytes) = 0;
  // Where the text of this execution is, as a path in the workspace; empty if nothing was written.
  virtual awaitable<std::string> finish(const Execution& execution) = 0;
};

// The persistent IPython kernel behind a channel: runs one cell at a time, to a limit, with outputs
// in order. Knows the frames of the link and trusts none of them.
class Kernel {
 public:
  // `spill` may be null and outlives the kernel.
  Kernel(boost::asio::any_io_executor executor, std::unique_ptr<KernelChannel> channel,
         OutputLimits limits, Spill* spill);
  ~Kernel();  // close() was awaited, or the io_context is going away

  // Waits for the kernel's `ready` frame, at most `limit`. Throws std::runtime_error with the
  // reason and the end of its stderr when it died or did not come up.
  awaitable<void> ready(std::chrono::milliseconds limit);

  // The same for a kernel that was thawed, or that stands ready: tells it so first
  // (docs/kernel-link.md, "resumed").
  awaitable<void> resumed(boost::json::object how, std::chrono::milliseconds limit);

  // Runs execution.code to its end and leaves the result in `execution`; returns when it has
  // finished. Never throws for what the cell does. One at a time (the session's Turn). Stops the
  // cell when execution.timeout has passed, or when a stop is requested: SIGINT; after 1 s SIGINT
  // again and SIGKILL to its child processes; after 2 s SIGINT again; after 3 s the whole sandbox
  // is killed
  // (`kept` = false). If this coroutine itself is cancelled, the sandbox is killed.
  awaitable<void> run(Execution& execution);

  // Answers the execution that is in Status::waiting_input; nullopt: nobody will answer, and the
  // kernel raises an error that names the `stdin` argument.
  awaitable<void> answer(Execution& execution, std::optional<std::string> value);

  bool alive() const;
  // Python and IPython version and what else the `ready` frame said; {} before it.
  const boost::json::object& greeting() const;

  // What it printed since the last execution, and no execution has taken over yet: bytes, bounded.
  std::string background() const;

  // Asks it to end, then kills it; within a second.
  awaitable<void> close();

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;  // also held by the coroutine that reads the channel
};

}  // namespace sandbox
