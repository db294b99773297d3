#include "transport/http/legacy_mcp.hpp"

#include <algorithm>

#include "mcp/envelope.hpp"
#include "transport/http/rpc_refusal.hpp"
#include "transport/log.hpp"

namespace transport::http {

namespace asio = boost::asio;
namespace json = boost::json;

namespace {

bool is_initialize(const json::value& message) {
  const json::object* object = message.if_object();
  const json::value* method = object ? object->if_contains("method") : nullptr;
  return method && *method == "initialize" && object->contains("id");
}

// Whether it has to be answered by more than 202. Nonsense in a batch has, too.
bool wants_answer(const json::value& message) {
  if (const json::array* batch = message.if_array())
    return std::ranges::any_of(*batch, wants_answer);
  const json::object* object = message.if_object();
  mcp::Kind kind = object ? mcp::kind_of(*object) : mcp::Kind::invalid;
  return kind != mcp::Kind::notification && kind != mcp::Kind::response;
}

std::size_t capabilities_size(const json::object& initialize) {
  const json::value* params = initialize.if_contains("params");
  const json::object* fields = params ? params->if_object() : nullptr;
  const json::value* capabilities = fields ? fields->if_contains("capabilities") : nullptr;
  return capabilities ? json::serialize(*capabilities).size() : 0;
}

}  // namespace

LegacyMcp::LegacyMcp(asio::any_io_executor executor, mcp::Server& server, Peers& peers,
                     McpLimits limits)
    : executor_(executor),
      server_(server),
      peers_(peers),
      limits_(limits),
      calls_(executor, log_defect) {}

LegacyMcp::Session LegacyMcp::session_of(const Request& request, Response& refused) {
  const std::string* id = request.header(kSessionHeader);
  if (!id) {
    refused = refusal(
        400, kBadRequest,
        "The header Mcp-Session-Id is required: send initialize first, then the id from its "
        "response's header with every request");
    return nullptr;
  }
  Session session = peers_.find(*id, request.principal);
  if (!session) {
    refused = refusal(404, kSessionNotFound,
                      "Session not found: it has ended, or this server never knew it. Send "
                      "initialize without Mcp-Session-Id for a new one");
    return nullptr;
  }
  const std::string* version = request.header(kVersionHeader);
  auto known = version ? mcp::parse_revision(*version) : mcp::kNewestLegacy;
  if (!known || mcp::era_of(*known) != mcp::Era::legacy) {
    refused = refusal(
        400, kBadRequest,
        "Unsupported MCP-Protocol-Version. This session speaks " +
            std::string(mcp::to_string(session->peer.legacy->revision)) +
            "; 2026-07-28 is spoken without a session, by requests that name it in params._meta");
    return nullptr;
  }
  return session;
}

awaitable<void> LegacyMcp::post(Exchange& exchange, json::value message, std::size_t bytes,
                                Load::Share share) {
  if (is_initialize(message)) {
    co_await initialize(exchange, std::move(message.get_object()));
    co_return;
  }
  Response refused;
  Session session = session_of(exchange.request(), refused);
  bool batch = message.is_array();
  if (session && batch && session->peer.legacy->revision != mcp::Revision::v2025_03_26) {
    refused = refusal(400, mcp::ErrorCode::invalid_request,
                      "Batches are for 2025-03-26 only: send one message a POST");
    session = nullptr;
  }
  if (!session) {
    co_await exchange.reply(std::move(refused));
    co_return;
  }
  if (wants_answer(message)) {
    { Load::Share moved = std::move(share); }  // the session's share is part of the same bounds
    co_await serve(exchange, std::move(session), std::move(message), bytes);
    co_return;
  }
  EventStream nowhere(executor_, EventStream::Options());
  nowhere.close();
  co_await server_.handle(std::move(message), session->peer, nowhere);
  Response taken = accepted_response();
  co_await exchange.reply(std::move(taken));
}

awaitable<void> LegacyMcp::serve(Exchange& exchange, Session session, json::value message,
                                 std::size_t bytes) {
  std::optional<Load::Share> share = Load::take(session->load, bytes);
  if (!share) {
    json::value id = mcp::readable_id(message);
    Response busy = refusal(429, mcp::ErrorCode::internal_error,
                            "Too many requests in flight in this session; send this one again when "
                            "an earlier one has been answered",
                            nullptr, id);
    co_await exchange.reply(std::move(busy));
    co_return;
  }
  Accepts accepts = accepted(exchange.request());
  EventStream::Options options;
  options.unread = limits_.unread_bytes;
  options.kept = limits_.kept_bytes;
  options.answers_only = !accepts.events;
  options.carries_requests = accepts.events;
  options.can_hang_up = accepts.events && is_newest(*session);
  auto stream = peers_.open_stream(*session, options);
  Delivery delivery;
  delivery.json = accepts.json;
  delivery.events = accepts.events;
  delivery.ids = true;
  delivery.priming = is_newest(*session);
  delivery.status = legacy_status;
  Settled settled{peers_, session, stream->name()};
  EventStream::Reader reader(stream);
  calls_.spawn(call(session, stream, std::move(*share), std::move(message), exchange.request().id));
  auto gone = exchange.gone();
  auto delivered = deliver(exchange, reader, delivery, limits_);
  co_await async::unless(std::move(gone), std::move(delivered));
}

awaitable<void> LegacyMcp::call(Session session, std::shared_ptr<EventStream> stream,
                                Load::Share share, json::value message, std::string origin) {
  co_await asio::this_coro::throw_if_cancelled(false);
  Settled settled{peers_, session, stream->name()};
  Load::Share held = std::move(share);
  co_await server_.handle(std::move(message), session->peer, *stream, std::move(origin));
  stream->finish();
}

// A stale id with it is no obstacle: gateways send the one they had.
awaitable<void> LegacyMcp::initialize(Exchange& exchange, json::object message) {
  const Request& request = exchange.request();
  json::value id = mcp::readable_id(message);
  const std::string* named = request.header(kSessionHeader);
  Response refused;
  if (named && peers_.find(*named, request.principal)) {
    refused = refusal(400, mcp::ErrorCode::invalid_request,
                      "This session is initialized already; send initialize without Mcp-Session-Id "
                      "for another one",
                      nullptr, id);
    co_await exchange.reply(std::move(refused));
    co_return;
  }
  if (capabilities_size(message) > limits_.capabilities_bytes) {
    refused = refusal(
        400, mcp::ErrorCode::invalid_params,
        "params.capabilities: longer than " + std::to_string(limits_.capabilities_bytes) + " bytes",
        nullptr, id);
    co_await exchange.reply(std::move(refused));
    co_return;
  }

  Session session = peers_.make(request.principal);
  EventStream::Options options;
  options.unread = limits_.unread_bytes;
  auto stream = std::make_shared<EventStream>(executor_, options);
  EventStream::Reader reader(stream);
  json::value initializing = std::move(message);
  co_await server_.handle(std::move(initializing), session->peer, *stream);
  stream->finish();
  Accepts accepts = accepted(request);
  Delivery delivery;
  delivery.json = accepts.json;
  delivery.events = accepts.events;
  delivery.status = legacy_status;
  if (session->peer.legacy) {
    if (!peers_.admit(session)) {
      refused = refusal(503, mcp::ErrorCode::internal_error,
                        "Too many sessions, and all of them are busy; try again in a moment",
                        nullptr, id);
      co_await exchange.reply(std::move(refused));
      co_return;
    }
    delivery.headers.emplace_back(kSessionHeader, session->id);
  }
  co_await deliver(exchange, reader, delivery, limits_);
}

awaitable<void> LegacyMcp::finish() {
  calls_.cancel();
  co_await calls_.join();
}

}  // namespace transport::http
