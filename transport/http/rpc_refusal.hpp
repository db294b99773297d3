#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <string_view>

#include "mcp/error.hpp"
#include "transport/http/exchange.hpp"

namespace transport::http {

// What the SDKs' servers answer where MCP names no code, and their clients are tested on.
inline constexpr auto kBadRequest = static_cast<mcp::ErrorCode>(-32000);
inline constexpr auto kSessionNotFound = static_cast<mcp::ErrorCode>(-32001);

// A response that is a JSON-RPC error. `id` null: the error answers no request in particular.
Response refusal(int status, mcp::ErrorCode code, std::string_view text,
                 boost::json::value data = nullptr, const boost::json::value& id = nullptr);

// 405: `allowed` is what the path has instead.
awaitable<void> refuse_method(Exchange& exchange, std::string allowed);

// 202 without a body: a notification or response was taken.
Response accepted_response();

// The status of a JSON body that holds this error.
int legacy_status(std::int64_t error);
int modern_status(std::int64_t error);  // 2026-07-28, "Error codes"

}  // namespace transport::http
