#include "app/http_server.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/ip/address.hpp>

#include "transport/log.hpp"

namespace app {

namespace http = transport::http;
namespace asio = boost::asio;
using async::awaitable;

namespace {

// A burst that a client may send at once: what it sends after a reconnect, say.
constexpr double kBurstSeconds = 2, kLeastBurst = 10;
constexpr std::chrono::milliseconds kLookInterval{100};

http::HostPolicy::Allowed allowed(const HttpOptions& options) {
  http::HostPolicy::Allowed result;
  result.address = options.address;
  result.hosts = options.allowed_hosts;
  result.origins = options.allowed_origins;
  if (std::size_t scheme = options.public_url.find("://"); scheme != std::string::npos) {
    std::string host = options.public_url.substr(scheme + 3);
    result.hosts.push_back(host.substr(0, host.find('/')));
  }
  return result;
}

http::ListenerLimits limits(const HttpOptions& options) {
  http::ListenerLimits result;
  result.connections = options.max_connections;
  return result;
}

http::McpLimits mcp_limits(const HttpOptions& options) {
  http::McpLimits result;
  result.sessions = options.max_mcp_sessions;
  result.sessions_per_principal = std::min(result.sessions_per_principal, result.sessions);
  return result;
}

awaitable<void> answer(http::Exchange& exchange, int status, std::string text) {
  co_await exchange.reply(http::plain(status, std::move(text)));
}

awaitable<void> answer_ready(http::Exchange& exchange, Readiness& readiness) {
  std::string problem = co_await readiness.problem();
  int status = problem.empty() ? 200 : 503;
  if (problem.empty()) problem = "ready";
  co_await answer(exchange, status, std::move(problem));
}

awaitable<void> answer_with(http::Exchange& exchange, const http::OAuth& oauth) {
  auto metadata = oauth.metadata_response();
  co_await exchange.reply(std::move(metadata));
}

}  // namespace

HttpServer::HttpServer(asio::any_io_executor executor, Keep& keep, const Options& options)
    : keep_(keep),
      options_(options.http),
      background_(executor, transport::log_defect),
      operations_(executor, keep, options_),
      mcp_(executor, keep.server, keep.pool, options.state_directory, mcp_limits(options_)),
      listener_(executor, options_.address, options_.port,
                operations_.observe([this](http::Exchange& exchange) { return handle(exchange); }),
                limits(options_), operations_.observe_refusals()),
      hosts_(allowed(options_)),
      readiness_(executor, keep.backend),
      transfers_(keep.tickets) {
  router_.guard([this](http::Request& request) { return hosts_.check_host(request); });
  router_.guard([this](http::Request& request) { return hosts_.check_origin(request); });
  authenticate();
  limit_rates();
  mount_health();
  operations_.mount(router_, [this] { return counted(); });
  transfers_.mount(router_, public_url());
  mcp_.mount(router_);
}

std::string HttpServer::local_url() const {
  auto address = asio::ip::make_address(listener_.address());
  std::string host = address.is_v6() ? "[" + address.to_string() + "]" : address.to_string();
  if (address.is_unspecified()) host = "localhost";
  return "http://" + host + ":" + std::to_string(listener_.port());
}

std::string HttpServer::public_url() const {
  return options_.public_url.empty() ? local_url() : options_.public_url;
}

void HttpServer::authenticate() {
  if (!options_.token_file.empty()) tokens_.load(options_.token_file);
  if (!options_.token.empty()) tokens_.add(options_.token);
  if (!options_.oauth_issuer.empty()) {
    keys_.emplace(listener_.executor(), options_.oauth_jwks);
    http::OAuthOptions oauth;
    oauth.issuer = options_.oauth_issuer;
    oauth.audience = options_.oauth_audience;
    oauth.resource = public_url() + "/mcp";
    oauth.authorization_servers = options_.oauth_authorization_servers;
    oauth.scopes = options_.oauth_scopes;
    oauth_.emplace(std::move(oauth), *keys_);
    auto metadata = [this](http::Exchange& exchange) { return answer_with(exchange, *oauth_); };
    for (const std::string& path : oauth_->metadata_paths())
      router_.add("GET", path, metadata, true);
  }
  if (tokens_.empty() && !oauth_) {
    router_.authenticate([](http::Request& request) {
      request.principal = "local";
      return std::optional<http::Response>();
    });
    return;
  }
  authentication_.emplace(tokens_, oauth_ ? &*oauth_ : nullptr);
  router_.authenticate([this](http::Request& request) { return authentication_->check(request); });
}

void HttpServer::limit_rates() {
  if (options_.rate_limit <= 0) return;
  double burst = std::max(kLeastBurst, options_.rate_limit * kBurstSeconds);
  rates_.emplace(options_.rate_limit, burst);
  router_.authenticate([this](http::Request& request) {
    auto wait = rates_->take(request.principal);
    return wait ? std::optional(http::too_many_requests(*wait)) : std::nullopt;
  });
}

void HttpServer::mount_health() {
  auto alive = [](http::Exchange& exchange) { return answer(exchange, 200, "alive"); };
  auto ready = [this](http::Exchange& exchange) { return answer_ready(exchange, readiness_); };
  router_.add("GET", "/healthz", alive, true);
  router_.add("GET", "/readyz", ready, true);
}

Metrics::Now HttpServer::counted() const {
  Metrics::Now now;
  now.http = listener_.counters();
  now.mcp_sessions = mcp_.sessions();
  if (authentication_) now.authentication_failures = authentication_->failures();
  if (rates_) now.rate_limited = rates_->refused();
  return now;
}

awaitable<void> HttpServer::handle(http::Exchange& exchange) {
  if (authentication_ && oauth_) co_await authentication_->prepare(exchange.request());
  co_await router_.handle(exchange);
}

awaitable<void> HttpServer::serve() {
  co_await asio::this_coro::throw_if_cancelled(false);
  if (keys_) background_.spawn(keys_->keep_current());
  background_.spawn(operations_.run());
  background_.spawn(mcp_.run());
  co_await listener_.serve();
  co_await cells_end();
  background_.cancel();
  co_await background_.join();
}

awaitable<void> HttpServer::cells_end() {
  while (keep_.sessions.running() > 0 && std::chrono::steady_clock::now() < last_call_)
    co_await async::sleep_for(kLookInterval);
}

void HttpServer::stop(std::chrono::milliseconds grace) {
  last_call_ = std::chrono::steady_clock::now() + grace;
  mcp_.end_streams();
  listener_.stop(grace);
}

void HttpServer::reload() {
  operations_.reload();
  if (options_.token_file.empty()) return;
  try {
    tokens_.reload();
    spdlog::info("tokens were read again: {}", tokens_.size());
  } catch (const std::exception& failure) {
    spdlog::error("tokens stay as they were: {}", failure.what());
  }
}

}  // namespace app
