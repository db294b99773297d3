#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "mcp/call.hpp"
#include "mcp/error.hpp"
#include "mcp/protocol.hpp"
#include "schemas/codec.hpp"

namespace mcp {

struct Tool {
  ToolInfo info;
  // `call` and `arguments` live until the returned coroutine has ended. Throws DecodeError (bad
  // arguments) and ToolError, both of which the model reads, and mcp::Error. Cancelled by its
  // coroutine's signal.
  std::function<awaitable<CallToolResult>(Call& call, const boost::json::object& arguments)> run;
  // What `run` reads, for the test that holds it to info.inputSchema.
  std::vector<schemas::DescribedMember> arguments;
};

// Makes a Tool::run of `awaitable<CallToolResult> f(Call&, Args)`. Args is a described struct; its
// members are the arguments, spelled as in the tool's schema document.
template <class Args, class F>
auto with_args(F f) {
  return [f](Call& call, const boost::json::object& arguments) {
    return f(call, schemas::decode_arguments<Args>(arguments));
  };
}

// A tool of `awaitable<CallToolResult> f(Call&, Args)`.
template <class Args, class F>
Tool make_tool(ToolInfo info, F f) {
  Tool tool;
  tool.info = std::move(info);
  tool.run = with_args<Args>(std::move(f));
  tool.arguments = schemas::described_names<Args>();
  return tool;
}

// Readable things by URI. One object serves all of them.
class Resources {
 public:
  virtual ~Resources() = default;
  // The same for every client: what belongs to one of them is not listed.
  virtual std::vector<Resource> list() const { return {}; }
  virtual std::vector<ResourceTemplate> templates() const = 0;
  // Throws ResourceNotFound, also for what belongs to another principal.
  virtual awaitable<ReadResourceResult> read(Call& call, std::string uri) = 0;
};

}  // namespace mcp
