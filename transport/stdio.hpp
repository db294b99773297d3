#pragma once

#include <chrono>
#include <cstddef>
#include <functional>

#include "mcp/server.hpp"

namespace transport {

// What one client may cost. With the defaults a client that writes and never reads costs at most
// the longest line, the requests in flight, the outbox, and one answer a request in flight.
struct StdioLimits {
  // A longer line is skipped without keeping it and answered with -32600. The largest honest
  // message is an upload in base64.
  std::size_t line_bytes = std::size_t{32} << 20;
  // A request beyond either is refused with -32603.
  std::size_t requests_in_flight = 64;
  std::size_t request_bytes_in_flight = std::size_t{64} << 20;
  // Unread output. While there is more, nothing is read.
  std::size_t unread_bytes = std::size_t{8} << 20;
  // What requests in flight get to end, and the client to read, once the input has ended.
  std::chrono::milliseconds grace{1200};
};

// Serves one client over newline-delimited JSON (MCP "stdio") until the input ends, the client
// stops listening, or the coroutine is cancelled (a signal, say). Then requests in flight have
// `grace` to be answered and are cancelled; none is left when the coroutine returns, at the latest
// when the tools have followed their cancellation. Never throws for what a client sends.
//
// A refused request is never queued: the reading goes on, so that a `notifications/cancelled`
// behind any number of requests is seen at once. Reading pauses for one reason only, a client that
// does not read its answers; such a client is heard again as soon as it reads.
//
// The descriptors stay open and the caller's. They are non-blocking meanwhile, which every process
// that shares the terminal or pipe sees: the flag belongs to the open file (a dup does not help,
// and sockets, which Node uses for pipes, cannot be opened anew). It is put back before returning.
// Regular files and /dev/null will do as either. Throws std::system_error for a descriptor that is
// not open.
//
// SIGPIPE must be ignored by the program.
//
// `ending` is called once, when the end begins: the caller may set a limit on how long it takes.
mcp::awaitable<void> serve_stdio(mcp::Server& server, int in_fd, int out_fd,
                                 StdioLimits limits = {}, std::function<void()> ending = {});

}  // namespace transport
