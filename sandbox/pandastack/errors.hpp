#pragma once

#include <chrono>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace sandbox::pandastack {

// What is known about the effect of a call that failed.
enum class Outcome {
  refused,  // it had none: it was not sent, or the server turned it away. It may be sent again
  unknown,  // it may have had all of its effect: look before anything is repeated
};

enum class Failure {
  no_connection,  // name, connect, TLS or proxy: nothing was sent
  deadline,       // the call's limit has passed, or it was silent for too long
  cut,            // the connection ended in the middle
  too_large,      // the answer is longer than the call's cap
  answered,       // with a status that says no; `status` is set
  malformed,      // with something that is not an answer of this API
  closed,         // the client was destroyed meanwhile
};

// A call to PandaStack that failed. The only exception of this folder's calls, but for StartError
// (settings, no libcurl) and what a cancellation throws. what() is for the reader: which call, what
// happened, what the server said, the request's id. The key is in none of these texts, whatever the
// server sent.
struct Error : std::runtime_error {
  Error(Failure failure, Outcome outcome, const std::string& what)
      : std::runtime_error(what), failure(failure), outcome(outcome) {}

  Failure failure;
  Outcome outcome;
  int status = 0;       // of the answer; 0: none came
  std::string message;  // what the server said, in one line of at most 500 bytes; may be empty
  std::string body;     // the answer as it is, at most 64 KiB of it
  std::optional<std::chrono::seconds> retry_after;  // as the server asked
  std::string request_id;                           // as it was sent in X-Request-Id
};

// Of a call that failed, what the reader can do about it.
std::string readable(const Error& failure);

// What the body of an error says: `error` (a text, or an object with a message), `message` and
// `detail` of a JSON object, whatever its content type, as "error: detail"; else the text itself.
// At most 500 bytes, without line breaks, valid UTF-8. Empty when it says nothing.
std::string message_of(std::string_view body);

// The guest cannot be reached yet, and nothing of the call has reached it: "connect: connection
// refused", or "no route to host" or "i/o timeout" of a dial. (After the dial an i/o timeout may
// well come from a command that runs.)
bool is_warm_up(std::string_view message);

// What a status of 400 or more means for the call's effect. A 5xx is `unknown` but where it says
// that nothing was begun: warm-up, 501, 503 with Retry-After, 507, "no available compute node".
Outcome outcome_of(int status, std::string_view message, bool has_retry_after);

}  // namespace sandbox::pandastack
