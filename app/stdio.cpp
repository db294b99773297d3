#include "transport/stdio.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <chrono>

#include "app/commands.hpp"
#include "app/keep.hpp"
#include "app/time_limit.hpp"
#include "async/task_group.hpp"
#include "transport/log.hpp"

namespace app {

namespace asio = boost::asio;

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// From the end of the input on. Clients kill a server that does not end by itself (MCP, stdio:
// shutdown), after two seconds at the least. What is left of kFreeze when the calls have ended is
// for putting kernels on disk; the rest is for cells to follow their interrupt, and for the end.
constexpr milliseconds kEnd{1950}, kFreeze{1400}, kLeastFreeze{100};

async::awaitable<void> stop_on_signal(std::function<void()> stop) {
  asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM, SIGHUP);
  int signal = co_await signals.async_wait(asio::use_awaitable);
  (void)signal;
  stop();
}

// Serves until the client leaves or a signal comes; then ends every kernel. What began here has
// ended when this returns.
async::awaitable<void> live(Keep& keep) {
  auto executor = co_await asio::this_coro::executor;
  async::TaskGroup serving(executor, transport::log_defect);
  async::TaskGroup housekeeping(executor, transport::log_defect);
  steady_clock::time_point ended;
  auto ending = [&] {
    ended = steady_clock::now();
    end_within(kEnd);
    keep.backend.wind_down();
  };
  housekeeping.spawn(keep.sessions.expire());
  housekeeping.spawn(keep.snapshots.expire());
  bool by_signal = false;
  housekeeping.spawn(stop_on_signal([&serving, &by_signal] {
    by_signal = true;
    serving.cancel();
  }));
  serving.spawn(transport::serve_stdio(keep.server, STDIN_FILENO, STDOUT_FILENO,
                                       transport::StdioLimits(), ending));
  co_await serving.join();
  // Many clients send a signal soon after they closed our input. The end, which puts kernels on
  // disk, has its limit; a second signal ends us at once.
  asio::signal_set ignored(executor);
  if (!by_signal)
    for (int signal : {SIGINT, SIGTERM, SIGHUP}) ignored.add(signal);
  housekeeping.cancel();
  co_await housekeeping.join();
  auto since = std::chrono::duration_cast<milliseconds>(steady_clock::now() - ended);
  co_await keep.sessions.shutdown(std::max(kFreeze - since, kLeastFreeze));
}

}  // namespace

int stdio(const Options& options) {
  run_to_end(options, live);
  return 0;
}

}  // namespace app
