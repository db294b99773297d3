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

// `elicitation: {}` means form mode only (2025-11-25, "Capabilities").
bool has_form_elicitation(const json::object& capabilities) {
  const json::value* found = capabilities.if_contains("elicitation");
  const json::object* modes = found ? found->if_object() : nullptr;
  return modes && (modes->contains("form") || !modes->contains("url"));
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
Answer answer_in(const json::object& response) {
  const json::value* result = response.if_contains("result");
  if (!result) return Answer{};
  try {
    return decode_answer(*result);
  } catch (const schemas::DecodeError&) {
    return Answer{};
  }
}

}  // namespace

Answer decode_answer(const json::value& elicit_result) {
  ElicitResult result = schemas::decode<ElicitResult>(elicit_result);
  Answer answer;
  if (result.action == "accept")
    answer.action = Answer::Action::accept;
  else if (result.action == "decline")
    answer.action = Answer::Action::decline;
  else if (result.action != "cancel")
    throw schemas::DecodeError("action: expected one of accept decline cancel");
  if (answer.action == Answer::Action::accept && result.content)
    answer.content = std::move(*result.content);
  return answer;
}

void RequestCall::progress(double progress, std::string message) {
  bool grows = std::isfinite(progress) && (!last_progress_ || progress > *last_progress_);
  if (!wants_progress() || !grows || !request_.live()) return;
  ProgressParams params;
  params.progressToken = request_.envelope.progress_token;
  params.progress = as_number(progress);
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

bool RequestCall::can_ask() const {
  if (!has_form_elicitation(request_.envelope.capabilities)) return false;
  if (request_.era() == Era::modern) return true;
  return revision() >= Revision::v2025_06_18 && request_.out.carries_requests();
}

awaitable<Answer> RequestCall::ask(ElicitParams question, std::string state,
                                   std::chrono::milliseconds limit) {
  if (revision() >= Revision::v2025_11_25) question.mode = "form";
  bool modern = request_.era() == Era::modern;
  if (!can_ask() && modern) {
    json::object elicitation, required, data;
    elicitation["form"].emplace_object();
    required["elicitation"] = std::move(elicitation);
    data["requiredCapabilities"] = std::move(required);
    throw Error(ErrorCode::missing_client_capability,
                "This call has to ask the user, which this client does not offer", std::move(data));
  }
  if (!can_ask()) throw ToolError("This client cannot ask its user.");
  if (modern) throw InputRequired{std::move(question), std::move(state)};
  Answer answer = co_await ask_now(std::move(question), limit);
  co_return answer;
}

awaitable<Answer> RequestCall::ask_now(ElicitParams question, std::chrono::milliseconds limit) {
  auto executor = co_await boost::asio::this_coro::executor;
  Peer::Asked asked(executor);
  Registered registered(request_.peer, asked);
  json::object message = notification("elicitation/create", schemas::encode(question).as_object());
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
  Answer answer;
  if (answered) answer = answer_in(*asked.response);
  co_return answer;
}

}  // namespace mcp
