#include "mcp/inputs.hpp"

#include "mcp/error.hpp"
#include "mcp/form.hpp"
#include "schemas/codec.hpp"

namespace mcp {

namespace json = boost::json;

namespace {

constexpr std::string_view kElicit = "elicitation/create";
constexpr std::string_view kSample = "sampling/createMessage";
constexpr std::string_view kRoots = "roots/list";

const json::object* capability(const json::object& capabilities, std::string_view name) {
  const json::value* found = capabilities.if_contains(name);
  return found ? found->if_object() : nullptr;
}

template <class Result>
void expect(const json::value& result, const std::string& path) {
  try {
    schemas::decode<Result>(result);
  } catch (const schemas::DecodeError& bad) {
    throw schemas::DecodeError(path + ": " + bad.what());
  }
}

void check_elicited(const InputRequest& request, const json::object& result,
                    const std::string& path) {
  expect<ElicitResult>(result, path);
  const json::value& action = result.at("action");
  if (action != "accept" && action != "decline" && action != "cancel")
    throw schemas::DecodeError(path + ".action: expected one of accept decline cancel");
  if (action != "accept") return;
  const json::value* content = result.if_contains("content");
  json::object fields;
  if (content && content->is_object()) fields = content->get_object();
  check_form(request.params.at("requestedSchema").as_object(), fields, path + ".content");
}

}  // namespace

InputRequest elicitation(const ElicitParams& form) {
  return InputRequest{std::string(kElicit), schemas::encode(form).as_object()};
}

InputRequest sampling(const CreateMessageParams& params) {
  return InputRequest{std::string(kSample), schemas::encode(params).as_object()};
}

InputRequest list_roots() { return InputRequest{std::string(kRoots), json::object()}; }

bool serves(const json::object& capabilities, std::string_view method, Revision revision) {
  if (method == kSample) return capability(capabilities, "sampling");
  if (method == kRoots) return capability(capabilities, "roots");
  // `elicitation: {}` means form mode only (2025-11-25, "Capabilities").
  const json::object* modes = capability(capabilities, "elicitation");
  return revision >= Revision::v2025_06_18 && modes &&
         (modes->contains("form") || !modes->contains("url"));
}

json::object essentials(const json::object& capabilities) {
  json::object out;
  for (const char* name : {"elicitation", "roots", "sampling"})
    if (capability(capabilities, name)) out[name].emplace_object();
  const json::object* modes = capability(capabilities, "elicitation");
  for (const char* mode : {"form", "url"})
    if (modes && modes->contains(mode)) out["elicitation"].as_object()[mode].emplace_object();
  return out;
}

json::object lacking(const json::object& capabilities, const InputRequests& requests,
                     Revision revision) {
  json::object out;
  for (const auto& [name, request] : requests) {
    if (serves(capabilities, request.method, revision)) continue;
    std::string_view method = request.method;
    json::value& missing = out[method.substr(0, method.find('/'))];
    missing.emplace_object();
    if (method == kElicit) missing.get_object()["form"].emplace_object();
  }
  return out;
}

json::object checked_response(const InputRequest& request, const json::value& result,
                              const std::string& path) {
  if (!result.is_object()) throw schemas::DecodeError(path + ": expected object");
  if (request.method == kElicit) check_elicited(request, result.get_object(), path);
  if (request.method == kSample) expect<CreateMessageResult>(result, path);
  if (request.method == kRoots) expect<ListRootsResult>(result, path);
  return result.get_object();
}

std::optional<InputResponses> read_responses(const InputRequests& requests,
                                             const json::object& given) {
  InputResponses responses;
  for (const auto& [name, request] : requests) {
    const json::value* found = given.if_contains(name);
    if (!found) return std::nullopt;
    try {
      responses[name] = checked_response(request, *found, "params.inputResponses." + name);
    } catch (const schemas::DecodeError& bad) {
      throw Error(ErrorCode::invalid_params, bad.what());
    }
  }
  return responses;
}

Answer answer_in(const InputResponses& responses, const std::string& name) {
  Answer answer;
  auto found = responses.find(name);
  if (found == responses.end()) return answer;
  ElicitResult result = schemas::decode<ElicitResult>(found->second);
  if (result.action == "accept") answer.action = Answer::Action::accept;
  if (result.action == "decline") answer.action = Answer::Action::decline;
  if (answer.action == Answer::Action::accept && result.content)
    answer.content = std::move(*result.content);
  return answer;
}

}  // namespace mcp
