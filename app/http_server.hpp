#pragma once

#include <memory>
#include <optional>
#include <string>

#include "app/keep.hpp"
#include "app/operations.hpp"
#include "app/options.hpp"
#include "app/readiness.hpp"
#include "app/transfers.hpp"
#include "async/task_group.hpp"
#include "transport/http/authentication.hpp"
#include "transport/http/host_policy.hpp"
#include "transport/http/listener.hpp"
#include "transport/http/mcp_over_http.hpp"
#include "transport/http/rate_limit.hpp"
#include "transport/http/router.hpp"

namespace app {

// `pykeep http` put together: which guards a request passes, and what serves it.
class HttpServer {
 public:
  // Listens at once. Throws std::runtime_error that says why it cannot: the address, a token file.
  HttpServer(boost::asio::any_io_executor executor, Keep& keep, const Options& options);
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // "http://127.0.0.1:8420": where clients on this machine reach it.
  std::string local_url() const;

  // Serves until cancelled, or stopped and done.
  async::awaitable<void> serve();
  // No new work; what runs has `grace` to end, cells that nobody waits for as well.
  void stop(std::chrono::milliseconds grace);
  // Reads the tokens again: what is wrong with them is logged, and the old ones stay. Goes on in a
  // new audit file.
  void reload();

 private:
  void authenticate();
  void limit_rates();
  void mount_health();
  async::awaitable<void> cells_end();
  Metrics::Now counted() const;
  async::awaitable<void> handle(transport::http::Exchange& exchange);
  std::string public_url() const;

  Keep& keep_;
  const HttpOptions& options_;
  async::TaskGroup background_;
  Operations operations_;
  transport::http::McpOverHttp mcp_;
  transport::http::Router router_;
  transport::http::Listener listener_;
  transport::http::HostPolicy hosts_;
  transport::http::Tokens tokens_;
  std::optional<transport::http::JwksSource> keys_;
  std::optional<transport::http::OAuth> oauth_;
  std::optional<transport::http::Authentication> authentication_;
  std::optional<transport::http::RateLimit> rates_;
  Readiness readiness_;
  Transfers transfers_;
  std::chrono::steady_clock::time_point last_call_;  // until when cells may run, once stopped
};

}  // namespace app
