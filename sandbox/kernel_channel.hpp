#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <variant>

#include "async/async.hpp"

namespace sandbox {

using async::awaitable;

// One message of the kernel link (docs/kernel-link.md): a JSON header and raw bytes.
struct Frame {
  boost::json::object header;
  std::string payload;
};

// How a kernel process ended, as the world outside saw it.
struct Exit {
  int code = 0;               // if it exited
  int signal = 0;             // if a signal ended it
  bool memory_limit = false;  // the sandbox's memory limit killed something since the last look
  // For the reader, complete: "killed: memory limit of 2 GiB reached".
  std::string cause;
  // Not an end at all: it cannot be reached any more, and may live on.
  bool unreachable = false;
};

struct StreamBytes {
  bool is_stderr = false;
  std::string bytes;
  bool is_early = false;  // it was printed before the frame that was sent last
};

// The kernel broke the link's grammar or its bounds: it is compromised or broken.
struct Violation {
  std::string what;
};

struct Closed {};

using KernelEvent = std::variant<StreamBytes, Frame, Violation, Closed>;

// A running kernel, seen from outside: one ordered stream of events, and a way to talk to it. Each
// backend has its own; Kernel (kernel.hpp) is written against this.
//
// Order: what the kernel wrote to stdout and stderr before it sent a frame comes before that frame.
class KernelChannel {
 public:
  virtual ~KernelChannel() = default;  // kills the whole sandbox if it still runs; does not block

  // The next event. After Violation or Closed only Closed follows. One caller at a time; a
  // cancelled call loses nothing. At most 256 KiB of stream bytes an event, 1 MiB of header, 32 MiB
  // of payload.
  virtual awaitable<KernelEvent> next() = 0;
  // An event that is already here, without waiting.
  virtual std::optional<KernelEvent> poll() = 0;

  // Sends a frame; throws system_error when the kernel is gone or has not read for 10 s.
  virtual awaitable<void> send(boost::json::object header, std::string payload = {}) = 0;

  virtual void interrupt() = 0;      // SIGINT to the kernel process
  virtual void kill_children() = 0;  // SIGKILL to every other process in the sandbox
  virtual void kill() = 0;           // SIGKILL to all of it

  // Waits for the end (at most 5 s after kill()) and says how it came.
  virtual awaitable<Exit> exit() = 0;
  // How often the memory limit has killed a process in the sandbox so far.
  virtual std::uint64_t memory_kills() = 0;
};

}  // namespace sandbox
