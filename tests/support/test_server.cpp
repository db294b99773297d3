// The protocol and the stdio transport with the fixture tools: what tests/transcripts/fixture plays
// with.

#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <csignal>

#include "async/task_group.hpp"
#include "tests/support/fixture_tools.hpp"
#include "transport/log_sink.hpp"
#include "transport/stdio.hpp"

namespace asio = boost::asio;

namespace {

async::awaitable<void> serve(mcp::Server& server, asio::signal_set& signals) {
  co_await transport::serve_stdio(server, 0, 1);
  signals.cancel();
}

}  // namespace

int main() {
  std::signal(SIGPIPE, SIG_IGN);
  spdlog::set_default_logger(
      std::make_shared<spdlog::logger>("test-server", std::make_shared<transport::LogSink>(2)));
  asio::io_context io(1);
  mcp::Server server = fixture_server();
  async::TaskGroup tasks(io.get_executor());
  asio::signal_set signals(io, SIGTERM, SIGINT);
  signals.async_wait([&](boost::system::error_code stopped, int) {
    if (!stopped) tasks.cancel();
  });
  tasks.spawn(serve(server, signals));
  io.run();
}
