#pragma once

#include <boost/json.hpp>

#include "mcp/server.hpp"
#include "transport/http/exchange.hpp"
#include "transport/http/load.hpp"
#include "transport/http/mcp_limits.hpp"

namespace transport::http {

// Streamable HTTP of 2026-07-28: nothing is remembered from one request to the next. A client that
// closes the response has cancelled the request.
class ModernMcp {
 public:
  ModernMcp(mcp::Server& server, McpLimits limits) : server_(server), limits_(limits) {}

  // `message` is a request of this era (ladder.hpp), `share` its part of what is in hand.
  awaitable<void> post(Exchange& exchange, boost::json::object message, Load::Share share);

 private:
  awaitable<void> serve(Exchange& exchange, boost::json::object message);

  mcp::Server& server_;
  McpLimits limits_;
};

}  // namespace transport::http
