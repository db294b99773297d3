#pragma once

#include <vector>

#include "mcp/server.hpp"

// Tools that need no sandbox, for tests of the protocol and the transports:
//   echo {text}        its text
//   slow {ms, steps}   waits so long, tells its progress after each step
//   flood {bytes}      a text of that size
//   ask {question}     asks the user, and says what came of it
//   fail {}            a failure for the model to read
//   break {}           a defect: throws what no tool should
std::vector<mcp::Tool> fixture_tools();

mcp::Server fixture_server();
