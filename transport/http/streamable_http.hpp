#pragma once

#include <optional>
#include <string>

#include "transport/http/legacy_mcp.hpp"
#include "transport/http/load.hpp"
#include "transport/http/mcp_limits.hpp"
#include "transport/http/modern_mcp.hpp"
#include "transport/http/router.hpp"

namespace transport::http {

// MCP's "Streamable HTTP": one path for both eras. Looks at a message's form and at its claim, and
// hands it to one of the two.
class StreamableHttp {
 public:
  StreamableHttp(Loads& loads, LegacyMcp& legacy, ModernMcp& modern, McpLimits limits)
      : loads_(loads), legacy_(legacy), modern_(modern), limits_(limits) {}

  void mount(Router& router);

 private:
  awaitable<void> post(Exchange& exchange);
  awaitable<void> get(Exchange& exchange);

  Loads& loads_;
  LegacyMcp& legacy_;
  ModernMcp& modern_;
  McpLimits limits_;
};

}  // namespace transport::http
