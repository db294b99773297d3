// tools/call: the arguments as clients send them, and the failures the model should read.

#include <algorithm>

#include "mcp/error.hpp"
#include "mcp/request.hpp"
#include "mcp/server.hpp"
#include "mcp/shape.hpp"
#include "schemas/codec.hpp"
#include "schemas/parse.hpp"

namespace mcp {

namespace json = boost::json;

namespace {

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
    boost::system::error_code bad;
    json::value parsed = schemas::parse(value.get_string(), bad, kMaxDepth);
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

}  // namespace

awaitable<CallToolResult> Server::call_tool(Request& request, CallToolParams params) {
  const Tool& tool = find_tool(offer_.tools, params.name);
  request.subject = tool.info.name;
  RequestCall call(request, self_.name);
  CallToolResult result;
  json::object arguments;
  try {
    arguments = read_arguments(std::move(params.arguments));
    result = co_await tool.run(call, arguments);
  } catch (const schemas::DecodeError& bad) {
    result = failure(bad.what());
  } catch (const ToolError& failed) {
    result = failure(failed.what());
  }
  for (Content& block : result.content) fit(block, request.revision());
  co_return result;
}

std::vector<MirroredArgument> Server::mirrored_arguments(const json::object& message) const {
  const json::value* method = message.if_contains("method");
  const json::value* params = message.if_contains("params");
  if (!method || *method != "tools/call" || !params) return {};
  try {
    auto call = schemas::decode<CallToolParams>(*params);
    auto mirrors = mirrors_.find(call.name);
    if (mirrors == mirrors_.end()) return {};
    return mirrored(mirrors->second, read_arguments(std::move(call.arguments)));
  } catch (const schemas::DecodeError&) {
    return {};  // the call itself will say what is wrong
  }
}

}  // namespace mcp
