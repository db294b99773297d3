#pragma once

// What a message says about itself: its kind, its era, and what the client of this one request can.

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/era.hpp"
#include "mcp/peer.hpp"

namespace mcp {

// params._meta of a modern request (2026-07-28, "Request metadata"), and of its result.
inline constexpr std::string_view kProtocolVersionKey = "io.modelcontextprotocol/protocolVersion";
inline constexpr std::string_view kClientCapabilitiesKey =
    "io.modelcontextprotocol/clientCapabilities";
inline constexpr std::string_view kLogLevelKey = "io.modelcontextprotocol/logLevel";
inline constexpr std::string_view kSubscriptionIdKey = "io.modelcontextprotocol/subscriptionId";
inline constexpr std::string_view kServerInfoKey = "io.modelcontextprotocol/serverInfo";

// A JSON-RPC id that we can echo as it came: a string, or an integer of 64 bits. (A fractional or
// larger number would not survive parsing.)
bool is_id(const boost::json::value& id);

// How in_flight names an id: "7" and "\"7\"" are two.
std::string key_of(const boost::json::value& id);

enum class Kind { request, notification, response, invalid };

// By the JSON-RPC members alone. A message with a method is never a response.
Kind kind_of(const boost::json::object& message);

// The id to answer an invalid message with; null if it has none that can be read.
boost::json::value readable_id(const boost::json::object& message);
boost::json::value readable_id(const boost::json::value& message);  // of a batch: null

// Whether the message claims the modern era: by its own params._meta, whatever the connection spoke
// before. (Some clients send server/discover and then initialize on one connection.)
bool claims_modern(const boost::json::object& message);

struct Envelope {
  Revision revision = kNewestLegacy;
  boost::json::object meta;           // params._meta
  boost::json::object capabilities;   // of the client, for this request
  std::optional<LogLevel> log_level;  // modern: set if the request asked for log messages
  boost::json::value progress_token;  // null if none; string or integer
};

// `params` is the request's, null if it has none. Throws Error: a params that is no object, a
// malformed or unsupported modern envelope.
Envelope read_envelope(const boost::json::value& params, const Peer& peer);

}  // namespace mcp
