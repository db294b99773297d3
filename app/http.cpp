#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/signal_set.hpp>
#include <cstdio>

#include "app/commands.hpp"
#include "app/http_server.hpp"
#include "app/time_limit.hpp"
#include "transport/log.hpp"

namespace app {

namespace asio = boost::asio;

namespace {

// What ending the kernels and the backend may take, after the grace, and putting them on disk
// alone.
constexpr std::chrono::seconds kLastSteps{15}, kFreeze{10};

// Each connection is a descriptor, and the usual 1,024 are there for programs that use select(2).
void allow_many_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

async::awaitable<void> follow_signals(HttpServer& server, sandbox::Backend& backend,
                                      std::chrono::seconds grace) {
  asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM, SIGHUP);
  for (bool stopping = false;;) {
    int signal = co_await signals.async_wait(asio::use_awaitable);
    if (signal == SIGHUP) {
      server.reload();
    } else if (stopping) {
      _exit(128 + signal);  // sandboxes end with us
    } else {
      stopping = true;
      end_within(grace + kLastSteps);
      backend.wind_down();
      server.stop(grace);
    }
  }
}

async::awaitable<void> serve(Keep& keep, const Options& options) {
  auto executor = co_await asio::this_coro::executor;
  HttpServer server(executor, keep, options);
  async::TaskGroup housekeeping(executor, transport::log_defect);
  housekeeping.spawn(keep.sessions.expire());
  housekeeping.spawn(keep.snapshots.expire());
  housekeeping.spawn(follow_signals(server, keep.backend, options.http.grace));
  std::fprintf(stderr, "pykeep: serving MCP at %s/mcp\n", server.local_url().c_str());
  co_await server.serve();
  housekeeping.cancel();
  co_await housekeeping.join();
}

async::awaitable<void> live(Keep& keep, const Options& options, int& code) {
  try {
    co_await serve(keep, options);
    code = 0;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "pykeep: %s\n", failure.what());
  }
  co_await keep.sessions.shutdown(kFreeze);
}

}  // namespace

int http(const Options& options) {
  int code = 1;
  allow_many_descriptors();
  run_to_end(options, [&](Keep& keep) { return live(keep, options, code); });
  return code;
}

}  // namespace app
