#include "mcp/request.hpp"

#include <cmath>

#include "mcp/error.hpp"
#include "mcp/reply.hpp"
#include "schemas/codec.hpp"

namespace mcp {

namespace json = boost::json;

namespace {

// Without logging/setLevel the server decides (2.6 of the revisions' logging pages).
constexpr LogLevel kLegacyThreshold = LogLevel::warning;
// Whole numbers up to here are written without an exponent.
constexpr double kExactDouble = 9007199254740992.0;  // 2^53

json::value as_number(double value) {
  if (value == std::trunc(value) && std::abs(value) <= kExactDouble)
    return static_cast<std::int64_t>(value);
  return value;
}

// Registers a request of ours as long as its asker waits.
class Registered {
 public:
  Registered(Peer& peer, Peer::Asked& asked) : peer_(peer), id_(peer.next_ask++) {
    peer_.asked[id_] = &asked;
  }
  ~Registered() { peer_.asked.erase(id_); }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;
  std::int64_t id() const { return id_; }

 private:
  Peer& peer_;
  std::int64_t id_;
};

awaitable<void> exchange(Outbox& out, json::object message, Peer::Asked& asked) {
  co_await out.send(std::move(message));
  while (!asked.response) co_await asked.changed.wait();
}

// The client need not show its question any longer.
void withdraw(Outbox& out, std::int64_t id) {
  CancelledParams params;
  params.requestId = id;
  params.reason = "no longer needed";
  out.offer(notification("notifications/cancelled", schemas::encode(params).as_object()));
}

// A client that refuses, errs or answers nonsense has not answered.
std::optional<json::object> result_in(const json::object& response, const InputRequest& request) {
  const json::value* result = response.if_contains("result");
  if (!result) return std::nullopt;
  try {
    return checked_response(request, *result, request.method);
  } catch (const schemas::DecodeError&) {
    return std::nullopt;
  }
}

}  // namespace

void RequestCall::progress(double progress, std::optional<double> total, std::string message) {
  bool grows = std::isfinite(progress) && (!last_progress_ || progress > *last_progress_);
  if (!wants_progress() || !grows || !request_.live()) return;
  ProgressParams params;
  params.progressToken = request_.envelope.progress_token;
  params.progress = as_number(progress);
  if (total) params.total = as_number(*total);
  if (revision() >= Revision::v2025_03_26 && !message.empty()) params.message = std::move(message);
  json::object fields = schemas::encode(params).as_object();
  if (request_.out.offer(notification("notifications/progress", std::move(fields))))
    last_progress_ = progress;
}

std::optional<LogLevel> RequestCall::threshold() const {
  if (request_.era() == Era::modern) return request_.envelope.log_level;
  return request_.peer.log_level.value_or(kLegacyThreshold);
}

void RequestCall::log(LogLevel level, std::string text) {
  std::optional<LogLevel> least = threshold();
  if (!least || level < *least || !request_.live()) return;
  LoggingMessageParams params;
  params.level = level;
  params.logger = logger_;
  params.data = text;
  json::object fields = schemas::encode(params).as_object();
  request_.out.offer(notification("notifications/message", std::move(fields)));
}

bool RequestCall::serves(std::string_view method) const {
  if (!mcp::serves(request_.envelope.capabilities, method, revision())) return false;
  return request_.era() == Era::modern || request_.out.carries_requests();
}

void RequestCall::expect_served(const InputRequests& requests) const {
  if (request_.era() == Era::modern) {
    json::object missing = lacking(request_.envelope.capabilities, requests, revision());
    if (missing.empty()) return;
    std::string names;
    for (const auto& one : missing) names += (names.empty() ? "" : ", ") + std::string(one.key());
    json::object data;
    data["requiredCapabilities"] = std::move(missing);
    throw Error(ErrorCode::missing_client_capability,
                "This request needs what the client does not offer: " + names, std::move(data));
  }
  for (const auto& [name, request] : requests) {
    if (serves(request.method)) continue;
    if (request.method == "elicitation/create") throw ToolError("This client cannot ask its user.");
    throw ToolError("This client does not serve " + request.method + ".");
  }
}

awaitable<InputResponses> RequestCall::ask(InputRequests requests, std::optional<std::string> state,
                                           std::chrono::milliseconds limit) {
  expect_served(requests);
  for (auto& [name, request] : requests)
    if (request.method == "elicitation/create" && revision() >= Revision::v2025_11_25)
      request.params["mode"] = "form";
  InputResponses responses;
  if (request_.era() == Era::modern) {
    std::optional<InputResponses> given;
    if (!state) given = read_responses(requests, request_.responses);
    if (!given) throw InputRequired{std::move(requests), std::move(state)};
    co_return std::move(*given);
  }
  for (auto& [name, request] : requests) {
    std::optional<json::object> result = co_await ask_now(request, limit);
    if (result) responses[name] = std::move(*result);
  }
  co_return responses;
}

awaitable<std::optional<json::object>> RequestCall::ask_now(InputRequest request,
                                                            std::chrono::milliseconds limit) {
  auto executor = co_await boost::asio::this_coro::executor;
  Peer::Asked asked(executor);
  Registered registered(request_.peer, asked);
  json::object message = notification(request.method, request.params);
  message["id"] = registered.id();
  bool answered = false;
  auto asking = exchange(request_.out, std::move(message), asked);
  try {
    answered = co_await async::within(limit, std::move(asking));
  } catch (...) {  // the call was cancelled: the user need not answer
    withdraw(request_.out, registered.id());
    throw;
  }
  if (!answered) withdraw(request_.out, registered.id());
  std::optional<json::object> result;
  if (answered) result = result_in(*asked.response, request);
  co_return result;
}

}  // namespace mcp
