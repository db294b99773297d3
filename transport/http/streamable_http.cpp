#include "transport/http/streamable_http.hpp"

#include "transport/http/ladder.hpp"
#include "transport/http/mcp_headers.hpp"
#include "transport/http/posted_message.hpp"
#include "transport/http/rpc_refusal.hpp"

namespace transport::http {

namespace {

constexpr const char* kPath = "/mcp";

bool names_modern(const Request& request) {
  const std::string* version = request.header(kVersionHeader);
  auto known = version ? mcp::parse_revision(*version) : std::nullopt;
  return known && mcp::era_of(*known) == mcp::Era::modern;
}

}  // namespace

void StreamableHttp::mount(Router& router) {
  router.add("POST", kPath, [this](Exchange& exchange) { return post(exchange); });
  router.add("GET", kPath, [this](Exchange& exchange) { return get(exchange); });
  // Without a handler of its own, HEAD would open a stream.
  router.add("HEAD", kPath,
             [](Exchange& exchange) { return refuse_method(exchange, "GET, POST, DELETE"); });
  router.add("DELETE", kPath, [this](Exchange& exchange) { return legacy_.end_session(exchange); });
}

awaitable<void> StreamableHttp::post(Exchange& exchange) {
  Accepts accepts = accepted(exchange.request());
  if (!accepts.json && !accepts.events) {
    Response refused =
        refusal(406, kBadRequest, "Answers are application/json or text/event-stream; accept both");
    co_await exchange.reply(std::move(refused));
    co_return;
  }
  std::optional<Posted> posted = co_await read_posted(exchange, loads_, limits_);
  if (!posted) co_return;
  Step step = classify(exchange.request(), posted->message);
  switch (step.to) {
    case Step::To::refused:
      co_await exchange.reply(std::move(step.refusal));
      break;
    case Step::To::accepted:
      step.refusal = accepted_response();
      co_await exchange.reply(std::move(step.refusal));
      break;
    case Step::To::legacy:
      co_await legacy_.post(exchange, std::move(posted->message), posted->bytes,
                            std::move(posted->share));
      break;
    case Step::To::modern:
      co_await modern_.post(exchange, std::move(posted->message.get_object()),
                            std::move(posted->share));
      break;
  }
}

// 2026-07-28 has no GET: what it is for there, subscriptions/listen, is a POST.
awaitable<void> StreamableHttp::get(Exchange& exchange) {
  if (!names_modern(exchange.request())) {
    co_await legacy_.get(exchange);
    co_return;
  }
  co_await refuse_method(exchange, "POST");
}

}  // namespace transport::http
