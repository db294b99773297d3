// `input_required` (2026-07-28): the questions that end a request until the client makes it again
// with the answers.

#include "mcp/error.hpp"
#include "mcp/request.hpp"
#include "mcp/server.hpp"
#include "schemas/codec.hpp"

namespace mcp {

namespace json = boost::json;

namespace {

RetryParams read_retry(const json::value& params) {
  try {
    return schemas::decode<RetryParams>(params);
  } catch (const schemas::DecodeError& bad) {
    throw Error(ErrorCode::invalid_params, std::string("params.") + bad.what());
  }
}

// What stays the same from one try to the next: what is asked for, but not with which metadata.
json::object lasting(const json::value& params) {
  json::object out = params.as_object();
  for (const char* key : {"_meta", "requestState", "inputResponses"}) out.erase(key);
  return out;
}

json::object result_of(const InputRequests& requests, std::optional<std::string> token) {
  InputRequiredResult result;
  if (!requests.empty()) result.inputRequests.emplace();
  for (const auto& [name, request] : requests)
    (*result.inputRequests)[name] = schemas::encode(request);
  result.requestState = std::move(token);
  return schemas::encode(result).as_object();
}

}  // namespace

std::optional<json::object> Server::take_answers(Request& request) {
  RetryParams retry = read_retry(request.params);
  json::object responses = std::move(retry.inputResponses).value_or(json::object());
  if (!retry.requestState) {
    request.responses = std::move(responses);
    return std::nullopt;
  }
  const std::string& token = *retry.requestState;
  const Question* question =
      questions_.find(token, request.peer.principal, request.method, lasting(request.params));
  if (!question)
    throw Error(ErrorCode::invalid_params,
                "requestState: unknown, expired, already answered or of another request; make the "
                "request again without it");
  auto answers = read_responses(question->requests, responses);
  if (!answers) return result_of(question->requests, token);
  Resumed& resumed = request.resumed.emplace();
  resumed.state = questions_.take(token).state;
  resumed.answer = answer_in(*answers, kAnswerKey);
  resumed.responses = std::move(*answers);
  return std::nullopt;
}

json::object Server::input_required(const Request& request, InputRequired asked) {
  if (!asked.state) return result_of(asked.requests, std::nullopt);
  Question question;
  question.principal = request.peer.principal;
  question.method = request.method;
  question.params = lasting(request.params);
  question.state = std::move(*asked.state);
  question.requests = asked.requests;
  return result_of(asked.requests, questions_.open(std::move(question)));
}

}  // namespace mcp
