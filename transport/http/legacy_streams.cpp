// The part of a session that is no POST: its GET stream, streams that are resumed, its end.

#include <boost/asio/this_coro.hpp>
#include <charconv>

#include "transport/http/legacy_mcp.hpp"
#include "transport/http/rpc_refusal.hpp"

namespace transport::http {

namespace asio = boost::asio;

namespace {

struct EventId {
  std::string stream;
  std::uint64_t number = 0;
};

std::optional<EventId> parse_event_id(std::string_view text) {
  std::size_t dash = text.rfind('-');
  if (dash == std::string_view::npos || dash == 0) return std::nullopt;
  EventId id;
  id.stream = text.substr(0, dash);
  const char* first = text.data() + dash + 1;
  const char* last = text.data() + text.size();
  auto [end, failed] = std::from_chars(first, last, id.number);
  if (failed != std::errc() || end != last) return std::nullopt;
  return id;
}

}  // namespace

std::shared_ptr<EventStream> LegacyMcp::stream_for(const Request& request, McpSession& session,
                                                   std::uint64_t& after, Response& refused) {
  const std::string* last = request.header(kLastEventHeader);
  if (last) {
    std::optional<EventId> id = parse_event_id(*last);
    std::shared_ptr<EventStream> stream = id ? peers_.find_stream(session, id->stream) : nullptr;
    if (stream) {
      after = id->number;
      return stream;
    }
    if (!id || !Peers::names_general(id->stream)) {
      refused = refusal(
          400, kBadRequest,
          id ? "Last-Event-ID: the events of this stream are not kept any more; what its request "
               "did is done, so look at its effects before you send it again"
             : "Last-Event-ID: not an id that this server gave out");
      return nullptr;
    }
    // Of the GET stream of an earlier run of this server: there is nothing more of it.
  }
  std::shared_ptr<EventStream> general = peers_.general_stream(session);
  if (general->is_read()) {
    refused = refusal(409, kBadRequest,
                      "This session has its GET stream already; close that one first, or resume it "
                      "by Last-Event-ID");
    return nullptr;
  }
  after = general->last();
  return general;
}

awaitable<void> LegacyMcp::get(Exchange& exchange) {
  co_await asio::this_coro::throw_if_cancelled(false);  // even then it joins what it started
  const Request& request = exchange.request();
  Response refused;
  std::uint64_t after = 0;
  std::shared_ptr<EventStream> stream;
  Session session;
  if (!accepted(request).events)
    refused = refusal(406, kBadRequest, "A GET is answered by text/event-stream; accept that");
  else
    session = session_of(request, refused);
  if (session) stream = stream_for(request, *session, after, refused);
  if (!stream) {
    co_await exchange.reply(std::move(refused));
    co_return;
  }
  bool general = stream == session->general;
  Delivery delivery;
  delivery.ids = true;
  delivery.priming = general && stream->last() == 0 && is_newest(*session);
  async::TaskGroup announcing(executor_);
  std::exception_ptr failure;
  try {
    Settled settled{peers_, session, stream->name()};
    EventStream::Reader reader(stream, after);
    if (general) announcing.spawn(server_.announce(session->peer, *stream));
    auto gone = exchange.gone();
    auto delivered = deliver_events(exchange, reader, delivery, limits_);
    co_await async::unless(std::move(gone), std::move(delivered));
  } catch (...) {
    failure = std::current_exception();  // this handler was cancelled, or a defect
  }
  announcing.cancel();
  co_await announcing.join();
  if (failure) std::rethrow_exception(failure);
}

awaitable<void> LegacyMcp::end_session(Exchange& exchange) {
  Response response;
  Session session = session_of(exchange.request(), response);
  if (session) {
    peers_.end(session);
    response = Response();
  }
  co_await exchange.reply(std::move(response));
}

}  // namespace transport::http
