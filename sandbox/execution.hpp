#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "async/async.hpp"

namespace sandbox {

using async::awaitable;

enum class StreamName { out, err };

// A piece of stdout or stderr: bytes as they came, not yet valid UTF-8.
struct Text {
  StreamName stream = StreamName::out;
  std::string bytes;
};

// One displayed result. All of it was chosen by code in the sandbox: nothing in it is to be
// trusted, decoded or followed as a path.
struct Display {
  struct Binary {
    std::string mime;
    std::string bytes;
  };
  boost::json::object data;  // MIME type -> text
  std::vector<Binary> binary;
  boost::json::object metadata;
  bool is_result = false;  // the value of the cell's last expression
  std::string display_id;  // what a later update names to replace it; empty: none
};

struct PythonError {
  std::string name;
  std::string value;
  std::vector<std::string> traceback;  // lines, without our own frames; may be empty
};

// What was left out between the head and the tail of an execution's outputs.
struct Gap {
  std::uint64_t bytes = 0;
  std::uint64_t lines = 0;
  std::uint64_t displays = 0;
};

struct Output {
  std::variant<Text, Display, PythonError, Gap> what;
};

// Roughly the memory it takes. Every part is counted: which one is large is up to the sandbox.
std::uint64_t held_bytes(const Display& display);
std::uint64_t held_bytes(const Output& output);

// The question a cell waits for (`input()`, `getpass()`).
struct InputRequest {
  std::string prompt;
  bool password = false;
};

// One cell's run, from the moment it was asked for: filled in by a Kernel while it runs, read by
// anyone who waits for it. Lives in its session's history, and outlives the call that started it.
class Execution {
 public:
  enum class Status {
    queued,  // waits for its session's turn
    running,
    waiting_input,  // `input` says for what
    // ended:
    ok,
    raised,       // `outputs` ends with the PythonError
    interrupted,  // on request; `kept` says whether the kernel lives on
    timed_out,    // its time limit passed; likewise
    kernel_died,  // `cause` says why
    abandoned,    // cancelled while queued: never started
  };

  // Who asked that it stop, if anyone did.
  enum class Stop { none, interrupt, cancelled };

  Execution(boost::asio::any_io_executor executor, std::string id, std::string code);

  std::string id;  // unguessable, unique in this process
  std::string code;
  std::optional<std::string> stdin_text;  // what sys.stdin holds, given up front
  bool can_ask = false;                   // whether input() may become a question to the user
  std::chrono::milliseconds timeout{0};

  Status status = Status::queued;
  int number = 0;      // In[n]; 0 until known
  int generation = 0;  // the kernel start it ran in
  std::optional<InputRequest> input;
  std::string cause;         // of a death, for the reader: "SIGSEGV (segmentation fault)"
  bool kept = true;          // whether the kernel, and so every variable, lives on
  bool unreachable = false;  // not kept, but only out of reach: how it ended is not known
  std::vector<std::string>
      notes;  // facts for the reader: "a child process was killed: memory limit"
  std::chrono::steady_clock::time_point asked, started, ended;
  std::uint64_t bytes_out = 0;  // of stdout and stderr, all of it
  std::string full_output;      // workspace path of the whole text when a gap was made, or empty

  // In order. Bounded: past the caps a Gap stands where the middle was.
  std::deque<Output> outputs;
  // Arrived since the last execution ended, before this one started; the session may put before it
  // what a kernel had printed that is on disk since.
  std::deque<Output> background;

  bool finished() const { return status >= Status::ok; }
  Stop stop_requested() const { return stop_; }
  // Asks the kernel that runs it to stop it. Idempotent; does nothing to one that has finished.
  void request_stop(Stop why);

  // Woken on every output and every change of status.
  async::Changed changed;
  // Woken when a stop is requested; the kernel waits here.
  async::Changed stop_changed;

 private:
  Stop stop_ = Stop::none;
};

}  // namespace sandbox
