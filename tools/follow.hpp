#pragma once

#include "mcp/call.hpp"
#include "tools/session.hpp"

namespace tools {

// How long a call waits before it answers `running`: clients cut calls at 60 s.
constexpr double kDefaultWait = 45;
constexpr double kMaxWait = 3600;
constexpr double kDefaultTimeout = 600;
constexpr double kMaxTimeout = 24 * 3600;

// `seconds` as a duration, or ToolError that names the argument and its range.
std::chrono::milliseconds checked_seconds(const char* argument, std::optional<double> seconds,
                                          double by_default, double least, double most);

// Waits until the execution has finished or `wait` has passed. Meanwhile tells the client how far
// it is (at least every 10 s, if it wants to know) and passes the cell's questions on to the user;
// a modern client gets the question as this call's result (InputRequired). A question that is not
// answered in time is withdrawn, and whoever follows next asks it again. Cancelled, it throws.
awaitable<void> follow(mcp::Call& call, Session& session, Execution& execution,
                       std::chrono::milliseconds wait);

// The same without questions: for a caller who wants it to end.
awaitable<void> await_end(mcp::Call& call, Execution& execution, std::chrono::milliseconds wait);

}  // namespace tools
