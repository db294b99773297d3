#include "app/operations.hpp"

namespace app {

namespace http = transport::http;

namespace {

async::awaitable<void> answer(http::Exchange& exchange, std::string text) {
  http::Response page;
  page.headers.emplace_back("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  page.headers.emplace_back("Cache-Control", "no-store");
  page.body = std::move(text);
  co_await exchange.reply(std::move(page));
}

}  // namespace

Operations::Operations(boost::asio::any_io_executor executor, Keep& keep,
                       const HttpOptions& options)
    : keep_(keep), metrics_(std::make_shared<Metrics>()) {
  keep.observers.add(metrics_);
  if (options.audit_file.empty()) return;
  audit_ = std::make_shared<Audit>(executor, keep.pool, options.audit_file);
  keep.observers.add(audit_);
}

http::Handler Operations::observe(http::Handler handler) {
  return http::logged(std::move(handler), counting());
}

http::Refused Operations::observe_refusals() { return http::logged_refusals(counting()); }

std::function<void(const http::Request&, const http::Served&)> Operations::counting() {
  return [metrics = metrics_](const http::Request& request, const http::Served& served) {
    metrics->request_served(request, served);
  };
}

void Operations::mount(http::Router& router, std::function<Metrics::Now()> now) {
  auto page = [this, now = std::move(now)](http::Exchange& exchange) {
    return answer(exchange, metrics_->text(complete(now())));
  };
  router.add("GET", "/metrics", page);
}

async::awaitable<void> Operations::run() {
  if (audit_) co_await audit_->run();
}

void Operations::reload() {
  if (audit_) audit_->reopen();
}

Metrics::Now Operations::complete(Metrics::Now now) const {
  now.sessions = keep_.sessions.held();
  now.kernels = keep_.sessions.kernels();
  if (audit_) now.audit_lost = audit_->lost();
  return now;
}

}  // namespace app
