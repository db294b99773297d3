#pragma once

#include <string>
#include <vector>

#include "mcp/prompt.hpp"
#include "tools/sessions.hpp"

namespace tools {

// What a model should know before its first call: habits, not what the tools' descriptions say. It
// is paid for in every conversation: under 200 tokens, which 800 characters are for sure.
// `network_isolation`: whether the backend can keep code off the network.
std::string instructions(bool network_isolation);

// Tasks that a user picks from a menu, in the order of prompts/list. Each is a text that tells the
// model how to go about it with the tools.
std::vector<mcp::Prompt> prompts();

// Completes `file` of a prompt with the files of the session that the caller used last, and
// `session` of a resource template with the caller's open sessions. Starts no kernel and opens no
// session.
mcp::Completer completer(Sessions& sessions);

}  // namespace tools
