// tools/call: the arguments as clients send them, the failures the model should read, and the
// question that ends a modern call until the client makes it again with the answer.

#include <algorithm>

#include "mcp/error.hpp"
#include "mcp/request.hpp"
#include "mcp/server.hpp"
#include "schemas/codec.hpp"

namespace mcp {

namespace json = boost::json;

namespace {

// The one question of a call, in inputRequests and inputResponses.
constexpr std::string_view kAnswerKey = "answer";
constexpr std::size_t kMaxDepth = 64;  // of arguments that came as a JSON text, as of any message

const Tool& find_tool(const std::vector<Tool>& tools, const std::string& name) {
  auto named = [&](const Tool& tool) { return tool.info.name == name; };
  auto found = std::find_if(tools.begin(), tools.end(), named);
  if (found != tools.end()) return *found;
  std::string known;
  for (const Tool& tool : tools) known += (known.empty() ? "" : ", ") + tool.info.name;
  throw Error(ErrorCode::invalid_params,
              "Unknown tool: " + schemas::clipped(name) + "; known: " + known);
}

// Clients leave arguments out, send null, or send the object as a JSON text.
json::object read_arguments(std::optional<json::value> given) {
  json::value value = std::move(given).value_or(nullptr);
  if (value.is_null()) return {};
  if (value.is_string()) {
    json::parse_options options;
    options.max_depth = kMaxDepth;
    boost::system::error_code bad;
    json::value parsed = json::parse(value.get_string(), bad, {}, options);
    if (!bad) value = std::move(parsed);
  }
  if (!value.is_object())
    throw schemas::DecodeError("arguments: expected object, got " +
                               std::string(json::to_string(value.kind())));
  return std::move(value.get_object());
}

CallToolResult failure(const char* text) {
  constexpr std::size_t kLongest = 20'000;  // whatever is quoted in it
  CallToolResult result;
  result.content.push_back(text_content(schemas::clipped(text, kLongest)));
  result.isError = true;
  return result;
}

json::object input_required(const ElicitParams& question, const std::string& token) {
  InputRequest asked;
  asked.method = "elicitation/create";
  asked.params = question;
  InputRequiredResult result;
  result.inputRequests[kAnswerKey] = schemas::encode(asked);
  result.requestState = token;
  return schemas::encode(result).as_object();
}

RetryParams read_retry(const json::value& params) {
  try {
    return schemas::decode<RetryParams>(params);
  } catch (const schemas::DecodeError& bad) {
    throw Error(ErrorCode::invalid_params, std::string("params.") + bad.what());
  }
}

// nullopt: the client did not answer (yet). Other keys than ours are ignored.
std::optional<Answer> read_answer(const RetryParams& retry) {
  const json::value* found =
      retry.inputResponses ? retry.inputResponses->if_contains(kAnswerKey) : nullptr;
  if (!found) return std::nullopt;
  try {
    return decode_answer(*found);
  } catch (const schemas::DecodeError& bad) {
    throw Error(ErrorCode::invalid_params,
                "params.inputResponses." + std::string(kAnswerKey) + ": " + bad.what());
  }
}

}  // namespace

awaitable<json::object> Server::call_tool(Request& request, CallToolParams params) {
  const Tool& tool = find_tool(tools_, params.name);
  request.tool = tool.info.name;
  RequestCall call(request, self_.name);
  CallToolResult result;
  std::optional<InputRequired> asked;
  json::object arguments;
  try {
    arguments = read_arguments(std::move(params.arguments));
    RetryParams retry;
    if (request.era() == Era::modern) retry = read_retry(request.params);
    if (retry.requestState) {
      const std::string& token = *retry.requestState;
      const Question* question =
          questions_.find(token, request.peer.principal, request.tool, arguments);
      if (!question)
        throw Error(ErrorCode::invalid_params,
                    "requestState: unknown, expired, already answered or of another call; make the "
                    "call again without it");
      std::optional<Answer> answer = read_answer(retry);
      if (!answer) co_return input_required(question->params, token);
      Resumed resumed;
      resumed.state = questions_.take(token).state;
      resumed.answer = std::move(*answer);
      call.resume(std::move(resumed));
    }
    result = co_await tool.run(call, arguments);
  } catch (const schemas::DecodeError& bad) {
    result = failure(bad.what());
  } catch (const ToolError& failed) {
    result = failure(failed.what());
  } catch (const InputRequired& question) {
    asked = question;
  }
  if (asked) {
    Question question;
    question.principal = request.peer.principal;
    question.tool = request.tool;
    question.arguments = std::move(arguments);
    question.state = std::move(asked->state);
    question.params = asked->question;
    co_return input_required(asked->question, questions_.open(std::move(question)));
  }
  co_return schemas::encode(result).as_object();
}

}  // namespace mcp
