#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>

#include "async/async.hpp"
#include "mcp/era.hpp"
#include "mcp/peer.hpp"
#include "mcp/protocol.hpp"

namespace mcp {

// The user's answer to a question of a tool.
struct Answer {
  enum class Action { accept, decline, cancel };
  Action action = Action::cancel;
  boost::json::object content;  // by the question's schema, not yet checked; empty unless accepted
};

// A modern client's answer to an earlier `input_required` result of the same call.
struct Resumed {
  std::string state;  // what the handler passed to ask(); never the client's own text
  Answer answer;
};

// What a tool may know about the request that called it, and say to its client while it works.
// Lives as long as the request.
class Call {
 public:
  virtual ~Call() = default;

  virtual const Peer& peer() const = 0;
  virtual Revision revision() const = 0;
  // The request's params._meta; empty if absent. Self-reported: never an identity.
  virtual const boost::json::object& meta() const = 0;

  // Whether the client gave a progress token.
  virtual bool wants_progress() const = 0;
  // Tells how far the work is, if the client wants to know and reads fast enough. `progress` must
  // grow from call to call; a value that does not is dropped.
  virtual void progress(double progress, std::string message) = 0;
  // A log line for the client, if it asked for this level.
  virtual void log(LogLevel level, std::string text) = 0;

  // Whether the user behind this client can be asked (form elicitation).
  virtual bool can_ask() const = 0;
  // Asks the user. Legacy: sends elicitation/create and waits, at most `limit`, for the answer; a
  // client that never answers, refuses or answers nonsense counts as Action::cancel. Modern: throws
  // InputRequired, which ends the request with an `input_required` result (`limit` does not apply:
  // the question is kept for 30 minutes); the client's retry, the same call with the same
  // arguments, finds `state` in resumed(). So call it where no lock is held, and be able to go on
  // from `state`. If can_ask() is false: throws Error (modern, -32021) or ToolError (legacy).
  virtual awaitable<Answer> ask(ElicitParams question, std::string state,
                                std::chrono::milliseconds limit) = 0;
  // Set when this request is such a retry.
  virtual const std::optional<Resumed>& resumed() const = 0;
};

// Thrown by Call::ask in the modern era; Server turns it into the `input_required` result.
struct InputRequired {
  ElicitParams question;
  std::string state;
};

}  // namespace mcp
