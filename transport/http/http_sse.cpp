#include "transport/http/http_sse.hpp"

#include <boost/asio/this_coro.hpp>

#include "mcp/envelope.hpp"
#include "mcp/random_id.hpp"
#include "transport/http/deliver.hpp"
#include "transport/http/mcp_headers.hpp"
#include "transport/http/peers.hpp"
#include "transport/http/posted_message.hpp"
#include "transport/http/rpc_refusal.hpp"
#include "transport/log.hpp"

namespace transport::http {

namespace asio = boost::asio;
namespace json = boost::json;

namespace {

constexpr const char* kStreamPath = "/sse";
constexpr const char* kPostPath = "/messages";

// The Python SDK's spelling is taken as well.
std::string session_id(std::string_view query) {
  while (!query.empty()) {
    std::size_t end = std::min(query.find('&'), query.size());
    std::string_view field = query.substr(0, end);
    query.remove_prefix(std::min(end + 1, query.size()));
    for (std::string_view key : {"sessionId=", "session_id="})
      if (field.starts_with(key)) return std::string(field.substr(key.size()));
  }
  return {};
}

EventStream::Options options_of(const McpLimits& limits) {
  EventStream::Options options;
  options.unread = limits.unread_bytes;
  options.carries_requests = true;
  return options;
}

}  // namespace

struct HttpSse::Connection {
  Connection(asio::any_io_executor executor, const McpLimits& limits, std::shared_ptr<Load> within)
      : id(mcp::random_id()),
        load(std::make_shared<Load>(limits.requests_per_session, limits.request_bytes_per_session,
                                    std::move(within))),
        stream(std::make_shared<EventStream>(executor, options_of(limits))),
        calls(executor, log_defect) {}

  std::string id;
  mcp::Peer peer;
  std::shared_ptr<Load> load;
  std::shared_ptr<EventStream> stream;
  async::TaskGroup calls;
};

void HttpSse::mount(Router& router) {
  router.add("GET", kStreamPath, [this](Exchange& exchange) { return open(exchange); });
  // Without a handler of its own, HEAD would open a stream.
  router.add("HEAD", kStreamPath,
             [](Exchange& exchange) { return refuse_method(exchange, "GET"); });
  router.add("POST", kPostPath, [this](Exchange& exchange) { return post(exchange); });
}

awaitable<void> HttpSse::open(Exchange& exchange) {
  co_await asio::this_coro::throw_if_cancelled(false);  // even then it joins its calls
  const Request& request = exchange.request();
  if (!accepted(request).events) {
    Response refused =
        refusal(406, kBadRequest, "A GET is answered by text/event-stream; accept that");
    co_await exchange.reply(std::move(refused));
    co_return;
  }
  auto executor = co_await asio::this_coro::executor;
  auto connection = std::make_shared<Connection>(executor, limits_, loads_.of(request.principal));
  connection->peer.principal = request.principal;
  connection->peer.transport_session = connection->id;
  connections_[connection->id] = connection;
  connection->calls.spawn(server_.announce(connection->peer, *connection->stream));
  std::exception_ptr failure;
  try {
    auto gone = exchange.gone();
    auto serving = serve(exchange, *connection);
    co_await async::unless(std::move(gone), std::move(serving));
  } catch (...) {
    failure = std::current_exception();  // this handler was cancelled, or a defect
  }
  connections_.erase(connection->id);
  connection->stream->close();
  cancel_calls(connection->peer);
  connection->calls.cancel();
  co_await connection->calls.join();
  if (failure) std::rethrow_exception(failure);
}

awaitable<bool> HttpSse::serve(Exchange& exchange, Connection& connection) {
  Response head = event_stream_head();
  head.body =
      "event: endpoint\ndata: " + std::string(kPostPath) + "?sessionId=" + connection.id + "\n\n";
  EventStream::Reader reader(connection.stream);
  co_await exchange.begin(std::move(head));
  bool whole = co_await write_events(exchange, reader, false, limits_.comment_interval);
  if (whole) co_await exchange.end();
  co_return whole;
}

std::shared_ptr<HttpSse::Connection> HttpSse::find(const Request& request) const {
  auto found = connections_.find(session_id(request.query));
  if (found == connections_.end() || found->second->peer.principal != request.principal)
    return nullptr;
  return found->second;
}

awaitable<void> HttpSse::post(Exchange& exchange) {
  Response response;
  if (session_id(exchange.request().query).empty()) {
    response = refusal(400, kBadRequest,
                       "The query names no sessionId: GET /sse first, and post to the URI that its "
                       "first event names");
    co_await exchange.reply(std::move(response));
    co_return;
  }
  std::optional<Posted> posted;
  if (find(exchange.request())) {
    posted = co_await read_posted(exchange, loads_, limits_);
    if (!posted) co_return;
  }
  std::shared_ptr<Connection> connection = find(exchange.request());  // it may have ended meanwhile
  std::optional<Load::Share> share;
  if (connection) {
    {
      Load::Share moved = std::move(posted->share);
    }  // the connection's is part of the same bounds
    share = Load::take(connection->load, posted->bytes);
  }
  if (!connection) {
    response = refusal(404, kSessionNotFound,
                       "Session not found: its stream has closed. GET /sse and initialize anew");
  } else if (!share) {
    response = refusal(429, mcp::ErrorCode::internal_error,
                       "Too many requests in flight; send this one again when an earlier one has "
                       "been answered",
                       nullptr, mcp::readable_id(posted->message));
  } else {
    response.status = 202;
    response.headers.emplace_back("Content-Type", "text/plain");
    response.body = "Accepted";
    connection->calls.spawn(
        call(*connection, std::move(posted->message), std::move(*share), exchange.request().id));
  }
  co_await exchange.reply(std::move(response));
}

awaitable<void> HttpSse::call(Connection& connection, json::value message, Load::Share share,
                              std::string origin) {
  Load::Share held = std::move(share);
  co_await server_.handle(std::move(message), connection.peer, *connection.stream,
                          std::move(origin));
  if (ending_ && connection.load->requests() == 1) connection.stream->finish();  // it was the last
}

void HttpSse::end_streams() {
  ending_ = true;
  for (const auto& [id, connection] : connections_)
    if (connection->load->requests() == 0) connection->stream->finish();
}

}  // namespace transport::http
