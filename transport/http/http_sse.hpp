#pragma once

#include <map>
#include <memory>
#include <string>

#include "async/task_group.hpp"
#include "mcp/server.hpp"
#include "transport/http/event_stream.hpp"
#include "transport/http/load.hpp"
#include "transport/http/mcp_limits.hpp"
#include "transport/http/router.hpp"

namespace transport::http {

// MCP's "HTTP+SSE" of 2024-11-05: GET /sse is the way down, POST /messages the way up. When the
// stream closes, the calls of its client are cancelled and nothing is kept of it.
class HttpSse {
 public:
  HttpSse(mcp::Server& server, Loads& loads, McpLimits limits)
      : server_(server), loads_(loads), limits_(limits) {}

  void mount(Router& router);

  // Ends each connection once none of its calls is left.
  void end_streams();

  std::size_t size() const { return connections_.size(); }

 private:
  struct Connection;

  awaitable<void> open(Exchange& exchange);
  awaitable<bool> serve(Exchange& exchange, Connection& connection);
  awaitable<void> post(Exchange& exchange);
  awaitable<void> call(Connection& connection, boost::json::value message, Load::Share share,
                       std::string origin);
  std::shared_ptr<Connection> find(const Request& request) const;

  mcp::Server& server_;
  Loads& loads_;
  McpLimits limits_;
  std::map<std::string, std::shared_ptr<Connection>> connections_;
  bool ending_ = false;
};

}  // namespace transport::http
