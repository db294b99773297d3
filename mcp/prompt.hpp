#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "mcp/call.hpp"
#include "mcp/protocol.hpp"

namespace mcp {

struct Prompt {
  using Arguments = std::map<std::string, std::string>;

  PromptInfo info;
  // `arguments` has the required ones, and none that info does not name. `call` and `arguments`
  // live until the returned coroutine has ended. Throws mcp::Error.
  std::function<awaitable<GetPromptResult>(Call& call, const Arguments& arguments)> get;
};

// What a value may be completed to, best first, for an argument of a prompt or a variable of a
// resource template that exists. The server cuts the list to what the protocol allows. `call` and
// `params` live until the returned coroutine has ended.
using Completer =
    std::function<awaitable<std::vector<std::string>>(Call& call, const CompleteParams& params)>;

}  // namespace mcp
