#include "transport/http/modern_mcp.hpp"

#include <boost/asio/this_coro.hpp>

#include "async/task_group.hpp"
#include "mcp/envelope.hpp"
#include "transport/http/deliver.hpp"
#include "transport/http/mcp_headers.hpp"
#include "transport/http/rpc_refusal.hpp"

namespace transport::http {

namespace asio = boost::asio;
namespace json = boost::json;

namespace {

// Its answer never comes first, and it may take for ever.
bool is_listen(const json::object& message) {
  return message.at("method") == "subscriptions/listen";
}

awaitable<void> call(mcp::Server& server, json::value message, mcp::Peer& peer, EventStream& stream,
                     std::string origin) {
  co_await server.handle(std::move(message), peer, stream, std::move(origin));
  stream.finish();
}

}  // namespace

awaitable<void> ModernMcp::post(Exchange& exchange, json::object message, Load::Share share) {
  Load::Share held = std::move(share);
  const Request& request = exchange.request();
  auto mirrored = server_.mirrored_arguments(message);
  std::optional<std::string> mismatch = header_mismatch(request, message, mirrored);
  json::value id = mcp::readable_id(message);
  Response refused;
  if (mismatch) {
    refused = refusal(400, mcp::ErrorCode::header_mismatch, *mismatch, nullptr, id);
  } else if (is_listen(message) && !accepted(request).events) {
    refused =
        refusal(406, mcp::ErrorCode::invalid_request,
                "subscriptions/listen is answered by text/event-stream; accept that", nullptr, id);
  } else {
    co_await serve(exchange, std::move(message));
    co_return;
  }
  co_await exchange.reply(std::move(refused));
}

awaitable<void> ModernMcp::serve(Exchange& exchange, json::object message) {
  co_await asio::this_coro::throw_if_cancelled(false);  // even then it joins its call
  auto executor = co_await asio::this_coro::executor;
  Accepts accepts = accepted(exchange.request());
  EventStream::Options options;
  options.unread = limits_.unread_bytes;
  options.answers_only = !accepts.events;
  auto stream = std::make_shared<EventStream>(executor, options);
  Delivery delivery;
  delivery.json = accepts.json;
  delivery.events = accepts.events;
  delivery.status = modern_status;

  mcp::Peer peer;
  peer.principal = exchange.request().principal;
  async::TaskGroup calls(executor);
  std::exception_ptr failure;
  try {
    EventStream::Reader reader(stream);  // when it goes, nothing is kept of the stream
    json::value value = std::move(message);
    calls.spawn(call(server_, std::move(value), peer, *stream, exchange.request().id));
    auto gone = exchange.gone();
    auto delivered = deliver(exchange, reader, delivery, limits_);
    co_await async::unless(std::move(gone), std::move(delivered));
  } catch (...) {
    failure = std::current_exception();  // this handler was cancelled, or a defect
  }
  calls.cancel();
  co_await calls.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace transport::http
