#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>

#include "async/async.hpp"
#include "mcp/era.hpp"
#include "mcp/inputs.hpp"
#include "mcp/peer.hpp"
#include "mcp/protocol.hpp"

namespace mcp {

// The name of the question of Call::ask's short form.
inline constexpr const char* kAnswerKey = "answer";

// A modern client's answers to an earlier `input_required` result of the same request.
struct Resumed {
  std::string state;  // what the handler passed to ask(); never the client's own text
  InputResponses responses;
  Answer answer;  // to the one question of the short form of ask()
};

// What a handler may know about its request, and say to its client while it works.
// Lives as long as the request.
class Call {
 public:
  virtual ~Call() = default;

  virtual const Peer& peer() const = 0;
  virtual Revision revision() const = 0;
  // The request's params._meta; empty if absent. Self-reported: never an identity.
  virtual const boost::json::object& meta() const = 0;
  // What the transport calls this request in its log; may be empty.
  virtual const std::string& origin() const = 0;

  // Whether the client gave a progress token.
  virtual bool wants_progress() const = 0;
  // Tells how far the work is (of `total`, if that is known), if the client wants to know and reads
  // fast enough. `progress` must grow from call to call; a value that does not is dropped.
  void progress(double progress, std::string message) {
    this->progress(progress, std::nullopt, std::move(message));
  }
  virtual void progress(double progress, std::optional<double> total, std::string message) = 0;
  // A log line for the client, if it asked for this level.
  virtual void log(LogLevel level, std::string text) = 0;

  // Whether the client serves such a request of ours: "elicitation/create" (form mode),
  // "sampling/createMessage", "roots/list".
  virtual bool serves(std::string_view method) const = 0;
  bool can_ask() const { return serves("elicitation/create"); }

  // Asks the client. Legacy: sends one request after the other and waits, at most `limit` for each;
  // what a client refuses, answers with nonsense or not at all is missing from the result. Modern:
  // throws InputRequired, which ends the request with an `input_required` result; the client then
  // makes the same request again with its answers. If there is a `state`, it is kept here for 30
  // minutes, and the new request finds it, and the answers, in resumed(). Without one nothing is
  // kept: the handler starts anew, and this call then returns the answers. So call it where no lock
  // is held. Without requests a state just makes the client come again.
  // If the client does not serve one of them: throws Error (modern, -32021) or ToolError (legacy).
  virtual awaitable<InputResponses> ask(InputRequests requests, std::optional<std::string> state,
                                        std::chrono::milliseconds limit) = 0;
  // The same for one question to the user, as kAnswerKey.
  awaitable<Answer> ask(ElicitParams question, std::string state, std::chrono::milliseconds limit);
  // Set when this request is such a retry, with a state.
  virtual const std::optional<Resumed>& resumed() const = 0;

  // Lets a legacy client over HTTP wait without a connection; nothing elsewhere.
  virtual void hang_up() = 0;
};

// Thrown by Call::ask in the modern era; Server turns it into the `input_required` result.
struct InputRequired {
  InputRequests requests;
  std::optional<std::string> state;
};

}  // namespace mcp
