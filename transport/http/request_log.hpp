#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include "transport/http/exchange.hpp"

namespace transport::http {

// What became of one request.
struct Served {
  int status = 0;                          // 0: nothing was answered, the client was gone
  bool streamed = false;                   // a body of unknown length
  std::chrono::microseconds until_head{};  // from the request's head to the response's
  std::chrono::microseconds whole{};       // until the response had ended
};

// Which of our endpoints a path belongs to: "/mcp", "/files/", …, or "other". A name to log and to
// count by: paths are the client's, unbounded, and those of files hold their ticket.
std::string_view path_class(std::string_view path);

// `inner`, with one line in the log for every request that has ended, and a call of `on_served`,
// which may be empty.
Handler logged(Handler inner, std::function<void(const Request&, const Served&)> on_served);
// The same for what is refused before a handler sees it.
Refused logged_refusals(std::function<void(const Request&, const Served&)> on_served);

}  // namespace transport::http
