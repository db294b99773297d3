#pragma once

#include <boost/json.hpp>
#include <memory>
#include <string>

#include "async/task_group.hpp"
#include "mcp/server.hpp"
#include "transport/http/deliver.hpp"
#include "transport/http/exchange.hpp"
#include "transport/http/load.hpp"
#include "transport/http/mcp_headers.hpp"
#include "transport/http/mcp_limits.hpp"
#include "transport/http/peers.hpp"

namespace transport::http {

// Streamable HTTP of the revisions with sessions (2025-03-26 to 2025-11-25). A client that
// disconnects has not cancelled: its calls go on, and what they say waits for it, within limits, to
// come back with Last-Event-ID.
class LegacyMcp {
 public:
  LegacyMcp(boost::asio::any_io_executor executor, mcp::Server& server, Peers& peers,
            McpLimits limits);

  // `message` is of this era (ladder.hpp), `bytes` its size, `share` what was reserved for it.
  awaitable<void> post(Exchange& exchange, boost::json::value message, std::size_t bytes,
                       Load::Share share);
  awaitable<void> get(Exchange& exchange);
  awaitable<void> end_session(Exchange& exchange);

  // Cancels what is in flight and returns once it has ended.
  awaitable<void> finish();

 private:
  using Session = Peers::Session;

  awaitable<void> initialize(Exchange& exchange, boost::json::object message);
  awaitable<void> serve(Exchange& exchange, Session session, boost::json::value message,
                        std::size_t bytes);
  awaitable<void> call(Session session, std::shared_ptr<EventStream> stream, Load::Share share,
                       boost::json::value message, std::string origin);
  // Tells the peers that a stream's request has ended, or its reader left.
  struct Settled {
    Peers& peers;
    Session session;
    std::string stream;
    ~Settled() { peers.settle(session, stream); }
  };
  // Whether it speaks the first revision with priming events, which older clients choke on, and
  // with early hang-ups.
  static bool is_newest(const McpSession& session) {
    return session.peer.legacy->revision >= mcp::Revision::v2025_11_25;
  }
  // The session that the headers name; else `refusal` says what is wrong with them.
  Session session_of(const Request& request, Response& refusal);
  // The stream that a GET asks for, and the number of the last event it has got.
  std::shared_ptr<EventStream> stream_for(const Request& request, McpSession& session,
                                          std::uint64_t& after, Response& refusal);

  boost::asio::any_io_executor executor_;
  mcp::Server& server_;
  Peers& peers_;
  McpLimits limits_;
  async::TaskGroup calls_;
};

}  // namespace transport::http
