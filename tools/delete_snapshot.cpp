#include "tools/tools.hpp"

namespace tools {

namespace {

struct Args {
  std::string snapshot;
};
BOOST_DESCRIBE_STRUCT(Args, (), (snapshot))

awaitable<mcp::CallToolResult> remove(Snapshots& snapshots, mcp::Call& call, Args args) {
  co_await snapshots.remove(call.peer().principal, args.snapshot);
  co_return text_result("Deleted snapshot " + args.snapshot +
                        ". Sessions that were started from it go on.");
}

}  // namespace

mcp::Tool delete_snapshot(Snapshots& snapshots) {
  return mcp::make_tool<Args>(tool_info("delete_snapshot"),
                              [&snapshots](mcp::Call& call, Args args) {
                                return remove(snapshots, call, std::move(args));
                              });
}

}  // namespace tools
