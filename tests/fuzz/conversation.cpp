#include "tests/fuzz/conversation.hpp"

#include <algorithm>

namespace {

namespace asio = boost::asio;
using transport::http::Request;
using transport::http::Response;

constexpr int kStatuses[] = {200, 202, 400, 404, 405, 406, 409, 413, 415, 429, 503};

boost::asio::thread_pool& pool() {
  static boost::asio::thread_pool one(1);
  return one;
}

transport::http::McpLimits limits(bool streams) {
  transport::http::McpLimits limits;
  limits.body_bytes = 4096;
  limits.requests_per_session = 4;
  limits.request_bytes_per_session = 8192;
  limits.sessions = 4;
  limits.sessions_per_principal = 3;
  limits.capabilities_bytes = 256;
  limits.unread_bytes = 4096;
  limits.kept_bytes = 512;
  limits.kept_streams = 2;
  limits.kept_streams_bytes = 2048;
  limits.json_wait = streams ? std::chrono::milliseconds(0) : std::chrono::hours(1);
  return limits;
}

std::string last_after(const std::string& text, std::string_view mark) {
  std::size_t at = text.rfind(mark);
  if (at == text.npos) return "";
  at += mark.size();
  return text.substr(at, text.find('\n', at) - at);
}

}  // namespace

// ---- one exchange ----

async::awaitable<std::optional<std::string>> FuzzedExchange::body(std::size_t limit) {
  if (body_.size() > limit) co_return std::nullopt;
  co_return body_;
}

async::awaitable<void> FuzzedExchange::reply(Response response) {
  check(stage_ == Stage::none, "one response a request");
  stage_ = Stage::over;
  head_ = std::move(response);
  text_ = head_.body;
  check_head();
  const std::string* type = header("Content-Type");
  if (type && *type == "application/json") check_message(well_formed(text_));
  check(head_.status != 202 || !type || *type == "text/plain", "an acceptance has no message");
  co_return;
}

async::awaitable<void> FuzzedExchange::begin(Response response) {
  check(stage_ == Stage::none, "one response a request");
  stage_ = Stage::streaming;
  head_ = std::move(response);
  text_ = head_.body;
  check_head();
  const std::string* type = header("Content-Type");
  check(head_.status == 200 && type && *type == "text/event-stream", "only events are streamed");
  co_return;
}

async::awaitable<bool> FuzzedExchange::write(std::string_view part) {
  check(stage_ == Stage::streaming, "a part of a response that has begun, and not ended");
  if (gone_) co_return false;
  text_ += part;
  co_return true;
}

async::awaitable<void> FuzzedExchange::end() {
  check(stage_ == Stage::streaming, "the end of a response that has begun");
  stage_ = Stage::over;
  co_return;
}

async::awaitable<void> FuzzedExchange::gone() {
  while (!gone_) co_await changed_.wait();
}

void FuzzedExchange::leave() {
  gone_ = true;
  changed_.notify();
}

void FuzzedExchange::set_handled() {
  check(gone_ || stage_ == Stage::over, "every request is answered");
  if (stage_ == Stage::none) return;
  const std::string* type = header("Content-Type");
  if (type && *type == "text/event-stream") check_events();
}

const std::string* FuzzedExchange::header(std::string_view name) const {
  for (const auto& [key, value] : head_.headers)
    if (key == name) return &value;
  return nullptr;
}

void FuzzedExchange::check_head() const {
  check(std::ranges::find(kStatuses, head_.status) != std::end(kStatuses), "a status of MCP's",
        std::to_string(head_.status));
  for (const auto& [name, value] : head_.headers) check_header(name, value);
}

// The fields of an event stream as we use them (HTML, section 9.2.6).
void FuzzedExchange::check_events() const {
  std::string_view rest = text_;
  bool endpoint = false;
  while (!rest.empty()) {
    std::string_view line = cut(rest, "\n");
    if (line.empty() || line.starts_with(":") || line.starts_with("id: ") ||
        line.starts_with("retry: "))
      continue;
    bool names_event = line.starts_with("event: ");
    if (names_event) endpoint = line == "event: endpoint";
    if (names_event) continue;
    check(line.starts_with("data:"), "a field of an event", line);
    line.remove_prefix(5);
    if (line.starts_with(' ')) line.remove_prefix(1);
    bool primes = line.empty();
    if (!primes && !endpoint) check_message(well_formed(line));
    endpoint = false;
  }
}

// ---- the conversation ----

FuzzedConversation::FuzzedConversation(bool streams)
    : pool_(pool()),
      mcp_(io_.get_executor(), server_, pool_, {}, limits(streams)),
      running_(io_.get_executor()),
      tasks_(io_.get_executor()) {
  mcp_.mount(router_);
  running_.spawn(mcp_.run());
  settle();
}

FuzzedConversation::~FuzzedConversation() {
  leave();
  mcp_.end_streams();
  settle();
  tasks_.cancel();
  settle();
  running_.cancel();
  settle();
  check(tasks_.size() == 0, "nothing waits when all clients are gone");
  check(running_.size() == 0, "every call ends when the server does");
}

void FuzzedConversation::send(Request request, std::string body) {
  request.principal = "anna";
  auto exchange =
      std::make_shared<FuzzedExchange>(io_.get_executor(), std::move(request), std::move(body));
  exchanges_.push_back(exchange);
  tasks_.spawn(handle(router_, exchange));
  settle();
  learn();
}

void FuzzedConversation::leave() {
  for (const Exchange& exchange : exchanges_) exchange->leave();
  settle();
  exchanges_.clear();
}

async::awaitable<void> FuzzedConversation::handle(transport::http::Router& router,
                                                  Exchange exchange) {
  co_await router.handle(*exchange);
  exchange->set_handled();
}

void FuzzedConversation::settle() {
  io_.restart();
  io_.poll();
}

void FuzzedConversation::learn() {
  for (const Exchange& exchange : exchanges_) {
    if (const std::string* id = exchange->header("Mcp-Session-Id")) session = *id;
    std::string text = exchange->text();
    if (std::string id = last_after(text, "id: "); !id.empty()) event = id;
    if (std::string uri = last_after(text, "data: /messages"); !uri.empty())
      messages = "/messages" + uri;
  }
}
