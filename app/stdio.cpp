#include "transport/stdio.hpp"

#include <sys/time.h>
#include <unistd.h>

#include <boost/asio/signal_set.hpp>

#include "app/commands.hpp"
#include "app/keep.hpp"
#include "async/task_group.hpp"
#include "transport/log.hpp"

namespace app {

namespace asio = boost::asio;

namespace {

async::awaitable<void> stop_on_signal(std::function<void()> stop) {
  asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM, SIGHUP);
  int signal = co_await signals.async_wait(asio::use_awaitable);
  (void)signal;
  stop();
}

// Clients kill a server that does not end by itself (MCP, stdio: shutdown). Whatever holds us up
// then, a large upload say, SIGALRM ends the process, and every sandbox dies with it.
void limit_the_end() {
  itimerval limit{};
  limit.it_value.tv_sec = 1;
  limit.it_value.tv_usec = 950'000;
  setitimer(ITIMER_REAL, &limit, nullptr);
}

// Serves until the client leaves or a signal comes; then ends every kernel. What began here has
// ended when this returns.
async::awaitable<void> live(Keep& keep) {
  auto executor = co_await asio::this_coro::executor;
  async::TaskGroup serving(executor, transport::log_defect);
  async::TaskGroup housekeeping(executor, transport::log_defect);
  housekeeping.spawn(keep.sessions.expire());
  housekeeping.spawn(keep.snapshots.expire());
  housekeeping.spawn(stop_on_signal([&serving] { serving.cancel(); }));
  serving.spawn(transport::serve_stdio(keep.server, STDIN_FILENO, STDOUT_FILENO,
                                       transport::StdioLimits(), limit_the_end));
  co_await serving.join();
  housekeeping.cancel();
  co_await housekeeping.join();
  co_await keep.sessions.shutdown();
}

}  // namespace

int stdio(const Options& options) {
  run_to_end(options, live);
  return 0;
}

}  // namespace app
