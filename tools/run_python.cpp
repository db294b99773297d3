#include "tools/follow.hpp"
#include "tools/render.hpp"
#include "tools/tools.hpp"

namespace tools {

namespace {

struct Args {
  std::string code;
  std::optional<std::string> session;
  std::optional<double> wait;
  std::optional<double> timeout;
  std::optional<std::string> stdin;
};
BOOST_DESCRIBE_STRUCT(Args, (), (code, session, wait, timeout, stdin))

// Stops the cell when its caller gives up before it has an answer.
class StopUnlessAnswered {
 public:
  explicit StopUnlessAnswered(std::shared_ptr<Execution> execution)
      : execution_(std::move(execution)) {}
  StopUnlessAnswered(const StopUnlessAnswered&) = delete;
  StopUnlessAnswered& operator=(const StopUnlessAnswered&) = delete;
  ~StopUnlessAnswered() {
    if (execution_) execution_->request_stop(Execution::Stop::cancelled);
  }
  void answered() { execution_ = nullptr; }

 private:
  std::shared_ptr<Execution> execution_;
};

awaitable<mcp::CallToolResult> await_result(mcp::Call& call, std::shared_ptr<Session> session,
                                            std::shared_ptr<Run> run, StopUnlessAnswered& guard,
                                            std::chrono::milliseconds wait) {
  try {
    co_await follow(call, *session, *run->execution, wait);
  } catch (const mcp::InputRequired&) {
    guard.answered();  // with the question: the cell waits for the client's retry
    throw;
  }
  guard.answered();
  co_return render(*session, *run);
}

awaitable<mcp::CallToolResult> run(Sessions& sessions, mcp::Call& call, Args args) {
  auto wait = checked_seconds("wait", args.wait, kDefaultWait, 0, kMaxWait);
  auto timeout = checked_seconds("timeout", args.timeout, kDefaultTimeout, 1, kMaxTimeout);
  if (call.resumed()) {
    auto found = sessions.find_execution(call.peer().principal, call.resumed()->state);
    StopUnlessAnswered guard(found.run->execution);
    co_return co_await await_result(call, found.session, found.run, guard, wait);
  }
  auto session = co_await sessions.resolve(call, args.session);
  Cell cell;
  cell.code = std::move(args.code);
  cell.stdin_text = std::move(args.stdin);
  cell.timeout = timeout;
  cell.can_ask = call.can_ask();
  cell.origin = call.origin();
  auto run = session->submit(std::move(cell));
  // Before the next wait: it throws at once when the call was cancelled while resolve() was busy.
  StopUnlessAnswered guard(run->execution);
  co_return co_await await_result(call, session, run, guard, wait);
}

}  // namespace

mcp::Tool run_python(Sessions& sessions) {
  return mcp::make_tool<Args>(tool_info("run_python"), [&sessions](mcp::Call& call, Args args) {
    return run(sessions, call, std::move(args));  // a lambda is never a coroutine
  });
}

}  // namespace tools
