#include "transport/http/mcp_over_http.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/this_coro.hpp>

namespace transport::http {

namespace asio = boost::asio;

namespace {

// How long a new session may be missing on disk after a crash.
constexpr std::chrono::seconds kSaveInterval{1};
// In save intervals; then also the times of last use are saved.
constexpr int kSweepInterval = 60;

}  // namespace

McpOverHttp::McpOverHttp(asio::any_io_executor executor, mcp::Server& server,
                         asio::thread_pool& pool, std::filesystem::path directory, McpLimits limits)
    : server_(server),
      pool_(pool),
      store_(std::move(directory)),
      loads_(std::make_shared<Load>(limits.requests, limits.request_bytes),
             limits.requests_per_principal, limits.request_bytes_per_principal),
      peers_(executor, loads_, limits),
      legacy_(executor, server, peers_, limits),
      modern_(server, limits),
      streamable_(loads_, legacy_, modern_, limits),
      sse_(server, loads_, limits) {
  if (!store_.usable())
    spdlog::warn("MCP sessions will not outlive this process: {}", store_.why());
  peers_.restore(store_.load());
}

void McpOverHttp::mount(Router& router) {
  streamable_.mount(router);
  sse_.mount(router);
}

void McpOverHttp::end_streams() {
  server_.end_subscriptions();
  peers_.end_general_streams();
  sse_.end_streams();
}

awaitable<void> McpOverHttp::run() {
  co_await asio::this_coro::throw_if_cancelled(false);  // even then it joins and saves
  auto executor = co_await asio::this_coro::executor;
  auto state = co_await asio::this_coro::cancellation_state;
  auto token = asio::as_tuple(asio::use_awaitable);
  asio::steady_timer timer(executor);
  for (int turn = 1; state.cancelled() == asio::cancellation_type::none; ++turn) {
    timer.expires_after(kSaveInterval);
    auto [woken] = co_await timer.async_wait(token);
    (void)woken;
    bool due = turn % kSweepInterval == 0;
    if (due) peers_.sweep();
    if (peers_.take_changed() || due) co_await save();
  }
  co_await legacy_.finish();
  co_await save();
}

awaitable<void> McpOverHttp::save() {
  if (!store_.usable()) co_return;
  auto writing = [this, peers = peers_.snapshot()] { return store_.save(peers); };
  auto written = async::on_pool(pool_, std::move(writing));
  std::string problem = co_await std::move(written);
  bool failed = !problem.empty();
  if (failed && !save_failed_)
    spdlog::error("MCP sessions started from now on will not outlive this process: {}", problem);
  save_failed_ = failed;
}

}  // namespace transport::http
