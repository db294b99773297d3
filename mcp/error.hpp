#pragma once

#include <boost/json.hpp>
#include <stdexcept>
#include <string>

namespace mcp {

// JSON-RPC 2.0 section 5.1, and what MCP adds (the revision's "Error Codes").
enum class ErrorCode {
  parse_error = -32700,
  invalid_request = -32600,
  method_not_found = -32601,
  invalid_params = -32602,
  internal_error = -32603,
  legacy_resource_not_found = -32002,     // 2024-11-05 to 2025-11-25
  header_mismatch = -32020,               // 2026-07-28, HTTP only
  missing_client_capability = -32021,     // 2026-07-28; data {requiredCapabilities}
  unsupported_protocol_version = -32022,  // 2026-07-28; data {supported, requested}
};

// The request failed as a protocol exchange: becomes a JSON-RPC error. What went wrong while a tool
// did its work is a result with isError instead (ToolError).
struct Error : std::runtime_error {
  ErrorCode code;
  boost::json::value data;  // null: the error has no data member
  Error(ErrorCode c, const std::string& message, boost::json::value d = nullptr)
      : std::runtime_error(message), code(c), data(std::move(d)) {}
};

// A resource that is not there. The code that says so differs between the eras.
struct ResourceNotFound : std::runtime_error {
  std::string uri;
  explicit ResourceNotFound(std::string u)
      : std::runtime_error("Resource not found: " + u), uri(std::move(u)) {}
};

// What the model should read and act on: becomes a tool result with isError. Say what happened,
// what is still intact and what to do next.
struct ToolError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace mcp
