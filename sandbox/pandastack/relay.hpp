#pragma once

// The relay in the guest (docs/guest-relay.md), as its answers say. All of it was written in the
// guest, by whoever is root there: nothing is believed but what it says of itself.

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "async/async.hpp"
#include "sandbox/frames.hpp"

namespace sandbox::pandastack {

using async::awaitable;

struct RelayState {
  std::string epoch;
  int port = 0;
  bool ended = false;                // the kernel has; one that is being taken over has not
  bool connected = false;            // the kernel is
  std::optional<std::int64_t> sent;  // frames the kernel was given; absent: not known yet
  bool busy = false;
  std::int64_t last = 0;  // number of the newest record
};

// nullopt for what is not a state.
std::optional<RelayState> read_state(const boost::json::value& in);

// What `start` printed.
struct Started {
  std::optional<RelayState> state;
  std::string problem, message, remedy;  // where it failed
};
Started read_started(std::string_view output);

// The relay is there and refuses.
struct Refusal : std::runtime_error {
  Refusal(int status_, std::string reason_, const std::string& what)
      : std::runtime_error(what), status(status_), reason(std::move(reason_)) {}
  int status;
  std::string reason;  // of a 409: "epoch", "gap", …
  std::optional<RelayState> state;
};

// nullopt: it is not the relay that says so.
std::optional<Refusal> read_refusal(int status, std::string_view body);

// A record, or why it is none.
struct Record {
  enum class Is { text, frame, sent, dropped, exit, violation, alive, end };
  Is is = Is::alive;
  std::int64_t seq = 0;
  bool is_stderr = false;
  Frame frame;              // its payload is that of `text`, too
  std::string why;          // of `end`; what, of `violation`
  std::uint64_t count = 0;  // bytes that were dropped; oom_kills of `exit`
  std::optional<int> code, signal;
};
// Throws schemas::DecodeError.
Record read_record(Frame raw);

// The body of an answer, as it comes.
class RelayAnswer {
 public:
  virtual ~RelayAnswer() = default;  // gives it up
  // nullopt at its end. Throws Error. A cancelled call loses nothing.
  virtual awaitable<std::optional<std::string>> read() = 0;
};

// How requests get to the relay. All that a carrier does may be repeated: the relay sees to it that
// nothing happens twice.
class Carrier {
 public:
  virtual ~Carrier() = default;
  // Returns when the answer has begun. Throws Refusal, or Error when the relay was not reached or
  // it is not known whether it was.
  virtual awaitable<std::unique_ptr<RelayAnswer>> ask(std::string method, std::string target,
                                                      std::string body,
                                                      std::chrono::milliseconds limit) = 0;
};

// The way to one kernel.
class Route : public Carrier {
 public:
  // Sees to it that a relay is there (`start` in the guest), when there is none as it seems. Throws
  // Error; nullopt when the guest is gone for good.
  virtual awaitable<std::optional<RelayState>> mend() = 0;
};

// How long to go on trying; tests are impatient.
struct LinkPatience {
  std::chrono::milliseconds first_pause{200}, most_pause{3'000};
  std::chrono::milliseconds lost{60'000};  // without an answer: the kernel is out of reach
};

// All of an answer of at most `cap` bytes. Throws as they do.
awaitable<std::string> read_all(RelayAnswer& answer, std::size_t cap);
// GET /state. Throws as they do, and Error (malformed).
awaitable<RelayState> ask_state(Carrier& carrier, std::chrono::milliseconds limit);

}  // namespace sandbox::pandastack
