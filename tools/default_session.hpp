#pragma once

#include <string>

#include "mcp/call.hpp"

namespace tools {

// What a call that names no session belongs to, as a key that calls of the same default session
// share: the transport's session, the conversation that a known host names in _meta, or the process
// (stdio). Empty when it belongs to none.
std::string default_key(const mcp::Call& call);

// Whether that is the process.
bool is_process_default(const mcp::Call& call);

}  // namespace tools
