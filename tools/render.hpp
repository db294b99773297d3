#pragma once

#include "mcp/protocol.hpp"
#include "tools/session.hpp"

namespace tools {

// What a result may weigh. Clients cut or drop larger ones; the whole JSON-RPC result stays below
// 1,000,000 bytes.
struct RenderLimits {
  std::size_t characters = 25'000;      // of text, head and tail together
  std::size_t image_base64 = 300'000;   // of one image
  std::size_t images_base64 = 500'000;  // of all images of a result
  std::size_t images = 20;
};

// An execution as content blocks: announcements, output from the background, outputs in order (text
// and images), what went wrong, and how to go on. isError unless it is running or ended well.
mcp::CallToolResult render(const Session& session, const Run& run, const RenderLimits& limits = {});

// "ok", "timed_out": as results, logs, metrics and the audit file have it.
std::string_view status_name(Execution::Status status);

}  // namespace tools
