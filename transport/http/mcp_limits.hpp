#pragma once

#include <chrono>
#include <cstddef>

namespace transport::http {

// What the clients of MCP over HTTP may cost, in all three of its forms.
struct McpLimits {
  // A longer body is answered 413. The largest honest message is an upload in base64.
  std::size_t body_bytes = std::size_t{32} << 20;

  // Requests being received or served: in total, of one principal, of one MCP session. 429 or 503
  // beyond.
  std::size_t requests = 4096;
  std::size_t requests_per_principal = 512;
  std::size_t requests_per_session = 64;
  // ... and their bytes.
  std::size_t request_bytes = std::size_t{256} << 20;
  std::size_t request_bytes_per_principal = std::size_t{128} << 20;
  std::size_t request_bytes_per_session = std::size_t{64} << 20;

  // MCP sessions (Mcp-Session-Id). Beyond either, the one that was idle for longest goes.
  std::size_t sessions = 4096;
  std::size_t sessions_per_principal = 1024;
  // Long: hardly any client comes back after a 404 (it is to initialize anew then).
  std::chrono::seconds session_idle{24 * 3600};
  // Of `initialize`, as JSON: kept with the session.
  std::size_t capabilities_bytes = 8 << 10;

  // Output of one stream that its client has not taken. Who sends more waits, progress is dropped.
  std::size_t unread_bytes = std::size_t{1} << 20;
  // What a resumable stream keeps for a client that lost its connection, answers not counted.
  std::size_t kept_bytes = 256 << 10;
  // Streams that have ended and are kept for such a client: of one session, and their bytes over
  // all sessions. The oldest go first.
  std::size_t kept_streams = 32;
  std::size_t kept_streams_bytes = std::size_t{64} << 20;
  // ... and for how long, when the client seems to have received all.
  std::chrono::seconds kept_for{300};

  // An answer that takes no longer is one JSON body, else the response becomes an event stream.
  std::chrono::milliseconds json_wait{1000};
  // Between two comments on a stream that has nothing to say: proxies cut silent ones at 30 s.
  std::chrono::milliseconds comment_interval{15'000};
};

}  // namespace transport::http
