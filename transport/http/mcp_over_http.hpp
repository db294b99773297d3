#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <filesystem>

#include "mcp/server.hpp"
#include "transport/http/http_sse.hpp"
#include "transport/http/legacy_mcp.hpp"
#include "transport/http/modern_mcp.hpp"
#include "transport/http/peer_store.hpp"
#include "transport/http/peers.hpp"
#include "transport/http/router.hpp"
#include "transport/http/streamable_http.hpp"

namespace transport::http {

// MCP in its three forms over HTTP: /mcp (Streamable HTTP of both eras), /sse with /messages.
// Belongs to the loop's thread, and outlives the listener.
class McpOverHttp {
 public:
  // Reads the MCP sessions that an earlier run left in `directory` (peer_store.hpp; created if need
  // be, empty: none are kept), before the loop runs. `server` and `pool` outlive it.
  McpOverHttp(boost::asio::any_io_executor executor, mcp::Server& server,
              boost::asio::thread_pool& pool, std::filesystem::path directory,
              McpLimits limits = {});

  void mount(Router& router);

  // Ends what would last for ever: GET streams, subscriptions, HTTP+SSE connections without calls.
  // To be called when the server is to stop, before the listener waits for its connections.
  void end_streams();

  // Ends sessions that nobody uses and keeps the store current, until cancelled: to be done when
  // the listener has ended. Then calls whose client is gone are cancelled; none is left when it
  // returns.
  awaitable<void> run();

  std::size_t sessions() const { return peers_.size() + sse_.size(); }

 private:
  awaitable<void> save();

  mcp::Server& server_;
  boost::asio::thread_pool& pool_;
  PeerStore store_;
  Loads loads_;
  Peers peers_;
  LegacyMcp legacy_;
  ModernMcp modern_;
  StreamableHttp streamable_;
  HttpSse sse_;
  bool save_failed_ = false;
};

}  // namespace transport::http
