#pragma once

// What MCP asks of a request's headers.

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/mirrored.hpp"
#include "transport/http/exchange.hpp"

namespace transport::http {

inline constexpr std::string_view kSessionHeader = "Mcp-Session-Id";
inline constexpr std::string_view kVersionHeader = "MCP-Protocol-Version";
inline constexpr std::string_view kLastEventHeader = "Last-Event-ID";

// Which forms of a response the client takes, by `Accept`. The specification has clients list both;
// without the header, and with `*/*`, they do.
struct Accepts {
  bool json = false;
  bool events = false;
};
Accepts accepted(const Request& request);

bool has_json_body(const Request& request);  // by Content-Type

// A header's text, out of its base64 form `=?base64?…?=` where it has that. Nullopt: the form is
// broken, or there are characters that may not be in a header.
std::optional<std::string> decoded(std::string_view value);

// Whether the headers say what the body of a modern request says (2026-07-28, "Standard headers"):
// nothing if so, else what is wrong. The version is required here, and known to be the same.
// `mirrored`: Server::mirrored_arguments.
std::optional<std::string> header_mismatch(const Request& request,
                                           const boost::json::object& message,
                                           const std::vector<mcp::MirroredArgument>& mirrored);

}  // namespace transport::http
