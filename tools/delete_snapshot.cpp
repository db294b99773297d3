#include "tools/tools.hpp"

namespace tools {

namespace {

struct Args {
  std::string snapshot;
};
BOOST_DESCRIBE_STRUCT(Args, (), (snapshot))

awaitable<mcp::CallToolResult> remove(Sessions& sessions, mcp::Call& call, Args args) {
  co_await sessions.delete_snapshot(call.peer().principal, args.snapshot);
  co_return text_result("Deleted snapshot " + args.snapshot +
                        ". Sessions that were started from it go on.");
}

}  // namespace

mcp::Tool delete_snapshot(Sessions& sessions) {
  return mcp::make_tool<Args>(
      tool_info("delete_snapshot"),
      [&sessions](mcp::Call& call, Args args) { return remove(sessions, call, std::move(args)); });
}

}  // namespace tools
