#include "transport/http/deliver.hpp"

namespace transport::http {

namespace {

// When a client whose stream broke off is to come back (2025-11-25).
constexpr std::string_view kRetry = "retry: 1000\n";

std::string to_event(EventStream& stream, const Event& event, bool ids) {
  std::string text;
  text.reserve(event.text.size() + 96);
  if (ids) {
    text += "id: " + event_id(stream.name(), event.number) + "\n";
    stream.set_named();
  }
  text += "event: message\ndata: ";
  text += event.text;  // one line: JSON escapes newlines
  text += "\n\n";
  return text;
}

void add_headers(Response& response, const Delivery& delivery) {
  response.headers.insert(response.headers.end(), delivery.headers.begin(), delivery.headers.end());
}

Response json_response(EventStream::Reader& reader, const Delivery& delivery) {
  Response response;
  const EventStream& stream = reader.stream();
  response.headers.emplace_back("Content-Type", "application/json");
  add_headers(response, delivery);
  if (stream.error() && delivery.status) response.status = delivery.status(*stream.error());
  while (const Event* event = reader.next()) {
    response.body += stream.is_batch() ? (response.body.empty() ? "[" : ",") : "";
    response.body += event->text;
    reader.advance();
  }
  if (stream.is_batch()) response.body += "]";
  return response;
}

// Whether the whole response is there and can be one JSON body. False after json_wait, or when
// something comes before the answer.
awaitable<bool> answer_comes_first(EventStream::Reader& reader, const Delivery& delivery,
                                   const McpLimits& limits) {
  using Clock = std::chrono::steady_clock;
  auto end = Clock::now() + limits.json_wait;
  for (;;) {
    const Event* event = reader.next();
    if (event) co_return event->answer;  // and all of a batch's, which are queued at once
    if (reader.at_end()) co_return false;
    auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    if (!delivery.events) left = limits.comment_interval;  // there is no other way to answer
    if (left.count() <= 0) co_return false;
    co_await reader.wait(left);
  }
}

}  // namespace

std::string event_id(const std::string& stream, std::uint64_t number) {
  return stream + "-" + std::to_string(number);
}

Response event_stream_head() {
  Response head;
  head.headers.emplace_back("Content-Type", "text/event-stream");
  head.headers.emplace_back("Cache-Control", "no-cache, no-transform");
  head.headers.emplace_back("X-Accel-Buffering", "no");  // nginx passes on what it has
  return head;
}

awaitable<bool> write_events(Exchange& exchange, EventStream::Reader& reader, bool ids,
                             std::chrono::milliseconds comment_interval) {
  while (!reader.at_end()) {
    std::string text = ": keep-alive\n\n";
    const Event* event = reader.next();
    bool found = event != nullptr;
    if (found) {
      text = to_event(reader.stream(), *event, ids);
    } else {
      co_await reader.wait(comment_interval);
      if (reader.next() || reader.at_end()) continue;
    }
    bool taken = co_await exchange.write(text);
    if (!taken) co_return false;
    if (found) reader.advance();
  }
  co_return true;
}

awaitable<bool> deliver_events(Exchange& exchange, EventStream::Reader& reader,
                               const Delivery& delivery, const McpLimits& limits) {
  Response head = event_stream_head();
  add_headers(head, delivery);
  if (delivery.priming) {
    head.body = std::string(kRetry) + "id: " + event_id(reader.stream().name(), 0) + "\ndata:\n\n";
    reader.stream().set_named();
  }
  co_await exchange.begin(std::move(head));
  bool whole = co_await write_events(exchange, reader, delivery.ids, limits.comment_interval);
  if (whole) co_await exchange.end();
  co_return whole;
}

awaitable<bool> deliver(Exchange& exchange, EventStream::Reader& reader, const Delivery& delivery,
                        const McpLimits& limits) {
  bool json = delivery.json;
  if (json) json = co_await answer_comes_first(reader, delivery, limits);
  if (json) {
    Response response = json_response(reader, delivery);
    co_await exchange.reply(std::move(response));
    co_return !exchange.is_gone();
  }
  if (!delivery.events) {  // the client withdrew its request, so there is no answer
    Response nothing;
    nothing.status = 202;
    co_await exchange.reply(std::move(nothing));
    co_return true;
  }
  bool whole = co_await deliver_events(exchange, reader, delivery, limits);
  co_return whole;
}

}  // namespace transport::http
