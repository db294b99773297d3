#pragma once

#include <boost/asio/cancellation_signal.hpp>
#include <boost/json.hpp>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "async/async.hpp"
#include "mcp/era.hpp"
#include "mcp/hub.hpp"
#include "mcp/protocol.hpp"

namespace mcp {

using async::awaitable;

// Where the messages caused by one request go: stdout, one HTTP response, one event stream. Belongs
// to the transport and outlives the Server::handle call it is given to.
class Outbox {
 public:
  virtual ~Outbox() = default;

  // Queues one message, in order; waits while the client reads too slowly for the transport's cap.
  // Does nothing once the client is gone. `message` is an object, or the array that answers a batch
  // (2025-03-26).
  virtual awaitable<void> send(boost::json::value message) = 0;

  // Queues a message that may be lost (progress, log): false, and nothing queued, while the client
  // reads too slowly.
  virtual bool offer(boost::json::object message) = 0;

  // Whether requests of our own (legacy elicitation) can reach the client this way.
  virtual bool carries_requests() const = 0;

  // Ends the connection but not the request: the client comes back for the rest of the stream (MCP
  // 2025-11-25, Streamable HTTP, "Resumability"). Does nothing where that is not possible.
  virtual void hang_up() {}
};

// One client as the server knows it: what a legacy `initialize` settled, and the calls in flight.
// A transport makes one per connection (or per legacy session) and keeps it until its calls ended.
struct Peer {
  struct InFlight {
    boost::asio::cancellation_signal signal;
    bool cancelled = false;   // this flag decides whether an answer is sent, never an error code
    bool cancellable = true;  // `initialize` is not
  };

  // Who is asking. Over stdio there is one: the user who started the process.
  std::string principal = "local";
  // The legacy session (Mcp-Session-Id, HTTP+SSE connection) that keys a default sandbox session.
  // Empty over stdio and for modern HTTP.
  std::string transport_session;
  // Whether calls that name no session share one default session: true over stdio only.
  bool has_default_session = false;

  struct Legacy {
    Revision revision;
    boost::json::object capabilities;
  };
  std::optional<Legacy> legacy;  // set by `initialize`
  std::optional<LogLevel> log_level;
  // What a legacy client is told outside its requests, by Server::announce. Kept while nothing can
  // be sent (no GET stream is open). Made by the server when it is needed.
  std::unique_ptr<Subscription> subscription;

  // By the id's JSON text. Shared with whoever emits a signal: the call may end, and so leave the
  // map, while its signal is being emitted.
  std::map<std::string, std::shared_ptr<InFlight>> in_flight;

  // Requests of ours that wait for the client's response, by their id.
  struct Asked {
    explicit Asked(boost::asio::any_io_executor executor) : changed(executor) {}
    async::Changed changed;
    std::optional<boost::json::object> response;
  };
  std::map<std::int64_t, Asked*> asked;
  std::int64_t next_ask = 1;
};

}  // namespace mcp
