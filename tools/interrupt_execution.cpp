#include "tools/follow.hpp"
#include "tools/render.hpp"
#include "tools/tools.hpp"

namespace tools {

namespace {

struct Args {
  std::optional<std::string> execution;
  std::optional<std::string> session;
  std::optional<bool> restart;
};
BOOST_DESCRIBE_STRUCT(Args, (), (execution, session, restart))

// A cell that does not react is killed after 3 s (sandbox/kernel.hpp); then there is a result.
constexpr std::chrono::seconds kInterruptTakes{6};

awaitable<Sessions::Found> find(Sessions& sessions, mcp::Call& call, const Args& args) {
  if (args.execution) co_return sessions.find_execution(call.peer().principal, *args.execution);
  Sessions::Found found;
  found.session = co_await sessions.resolve(call, args.session);
  found.run = found.session->active();
  co_return found;
}

awaitable<mcp::CallToolResult> interrupt(Sessions& sessions, mcp::Call& call, Args args) {
  Sessions::Found found = co_await find(sessions, call, args);
  bool had_kernel = found.session->has_variables();
  if (found.run) {
    found.run->execution->request_stop(Execution::Stop::interrupt);
    co_await await_end(call, *found.run->execution, kInterruptTakes);
  }
  if (args.restart.value_or(false) && had_kernel) {
    co_await found.session->restart("was stopped on request");
    co_return text_result(
        "The kernel of session " + found.session->handle() +
        " was stopped. Its variables are gone; files in /workspace are kept. The next run_python "
        "starts a new kernel.");
  }
  if (!found.run)
    co_return text_result("Nothing runs in session " + found.session->handle() + "; its " +
                          (had_kernel ? "variables are kept." : "kernel is not running."));
  mcp::CallToolResult result = render(*found.session, *found.run);
  result.isError.reset();  // to be interrupted is what was asked for
  co_return result;
}

}  // namespace

mcp::Tool interrupt_execution(Sessions& sessions) {
  return mcp::make_tool<Args>(tool_info("interrupt_execution"),
                              [&sessions](mcp::Call& call, Args args) {
                                return interrupt(sessions, call, std::move(args));
                              });
}

}  // namespace tools
