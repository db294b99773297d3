#pragma once

#include <boost/json.hpp>
#include <optional>

#include "transport/http/exchange.hpp"
#include "transport/http/load.hpp"
#include "transport/http/mcp_limits.hpp"

namespace transport::http {

// The JSON value that a POST brings.
struct Posted {
  boost::json::value message;
  std::size_t bytes = 0;
  Load::Share share;  // of the principal's load
};

// Reads it; nullopt when it is no such thing or too much, and was refused: 415, 413, 408, 429, 400.
awaitable<std::optional<Posted>> read_posted(Exchange& exchange, Loads& loads,
                                             const McpLimits& limits);

}  // namespace transport::http
