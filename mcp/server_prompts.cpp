// prompts/get and completion/complete.

#include <algorithm>

#include "mcp/error.hpp"
#include "mcp/request.hpp"
#include "mcp/server.hpp"
#include "mcp/shape.hpp"
#include "schemas/codec.hpp"

namespace mcp {

namespace json = boost::json;

namespace {

constexpr std::size_t kMaxValues = 100;  // "Completion Results" of the revisions

const Prompt& find_prompt(const std::vector<Prompt>& prompts, const std::string& name) {
  auto named = [&](const Prompt& prompt) { return prompt.info.name == name; };
  auto found = std::find_if(prompts.begin(), prompts.end(), named);
  if (found == prompts.end())
    throw Error(ErrorCode::invalid_params, "Unknown prompt: " + schemas::clipped(name));
  return *found;
}

// Arguments that the prompt does not name are ignored, as the SDKs' servers do.
Prompt::Arguments read_arguments(const PromptInfo& info, const json::object& given) {
  Prompt::Arguments arguments;
  for (const PromptArgument& argument : info.arguments) {
    const json::value* value = given.if_contains(argument.name);
    if (value && !value->is_string())
      throw Error(ErrorCode::invalid_params,
                  "params.arguments." + argument.name + ": expected string");
    if (!value && argument.required.value_or(false))
      throw Error(ErrorCode::invalid_params, "params.arguments." + argument.name + ": required");
    if (value) arguments[argument.name] = value->get_string();
  }
  return arguments;
}

bool has_template(const Resources* resources, const std::string& uri) {
  if (!resources) return false;
  auto templates = resources->templates();
  auto same = [&](const ResourceTemplate& one) { return one.uriTemplate == uri; };
  return std::any_of(templates.begin(), templates.end(), same);
}

}  // namespace

awaitable<GetPromptResult> Server::get_prompt(Request& request, GetPromptParams params) {
  const Prompt& prompt = find_prompt(offer_.prompts, params.name);
  request.subject = prompt.info.name;
  json::object given = std::move(params.arguments).value_or(json::object());
  Prompt::Arguments arguments = read_arguments(prompt.info, given);
  RequestCall call(request, self_.name);
  GetPromptResult result = co_await prompt.get(call, arguments);
  for (PromptMessage& message : result.messages) fit(message.content, request.revision());
  co_return result;
}

awaitable<CompleteResult> Server::complete_argument(Request& request, CompleteParams params) {
  const Reference& ref = params.ref;
  if (ref.type == "ref/prompt")
    find_prompt(offer_.prompts, ref.name.value_or(""));
  else if (ref.type != "ref/resource")
    throw Error(ErrorCode::invalid_params, "params.ref.type: expected ref/prompt or ref/resource");
  else if (!has_template(offer_.resources, ref.uri.value_or("")))
    throw Error(ErrorCode::invalid_params,
                "Unknown resource template: " + schemas::clipped(ref.uri.value_or("")));
  RequestCall call(request, self_.name);
  Completion completion;
  completion.values = co_await offer_.complete(call, params);
  completion.total = completion.values.size();
  completion.hasMore = completion.values.size() > kMaxValues;
  if (*completion.hasMore) completion.values.resize(kMaxValues);
  CompleteResult result;
  result.completion = std::move(completion);
  co_return result;
}

}  // namespace mcp
