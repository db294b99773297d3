#pragma once

#include <boost/json.hpp>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/peer.hpp"
#include "mcp/tool.hpp"

namespace mcp {

// The protocol, without any transport: one message in, the messages it causes out.
class Server {
 public:
  // `resources` may be null: then none are offered. Both outlive the server.
  Server(Implementation self, std::string instructions, std::vector<Tool> tools,
         Resources* resources);

  // Returns once everything `message` caused has been sent. Never throws for what a client sends.
  // `message` is any JSON value; `peer` and `out` outlive the call. Requests run concurrently: the
  // transport starts one handle() a message, in the order of arrival, and does not await one before
  // it starts the next (otherwise a cancellation would never be seen).
  awaitable<void> handle(boost::json::value message, Peer& peer, Outbox& out);

  // The reply to bytes that are not JSON (-32700), or to a line past the transport's cap (-32600).
  static boost::json::object refusal(ErrorCode code, std::string_view text);
};

}  // namespace mcp
