#include "tools/follow.hpp"
#include "tools/render.hpp"
#include "tools/tools.hpp"

namespace tools {

namespace {

struct Args {
  std::string execution;
  std::optional<double> wait;
};
BOOST_DESCRIBE_STRUCT(Args, (), (execution, wait))

awaitable<mcp::CallToolResult> wait(Sessions& sessions, mcp::Call& call, Args args) {
  auto limit = checked_seconds("wait", args.wait, kDefaultWait, 0, kMaxWait);
  auto found = sessions.find_execution(call.peer().principal, args.execution);
  found.session->touch();
  co_await follow(call, *found.session, *found.run->execution, limit);
  co_return render(*found.session, *found.run);
}

}  // namespace

mcp::Tool wait_execution(Sessions& sessions) {
  return mcp::make_tool<Args>(tool_info("wait_execution"), [&sessions](mcp::Call& call, Args args) {
    return wait(sessions, call, std::move(args));
  });
}

}  // namespace tools
