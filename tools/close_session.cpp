#include "tools/tools.hpp"

namespace tools {

namespace {

struct Args {
  std::string session;
};
BOOST_DESCRIBE_STRUCT(Args, (), (session))

awaitable<mcp::CallToolResult> close(Sessions& sessions, mcp::Call& call, Args args) {
  co_await sessions.close(call.peer().principal, args.session);
  co_return text_result("Closed session " + args.session +
                        ": its kernel was ended and its files were deleted.");
}

}  // namespace

mcp::Tool close_session(Sessions& sessions) {
  return mcp::make_tool<Args>(tool_info("close_session"), [&sessions](mcp::Call& call, Args args) {
    return close(sessions, call, std::move(args));
  });
}

}  // namespace tools
