// The method table, and the methods that are not about calling tools.

#include "mcp/envelope.hpp"
#include "mcp/error.hpp"
#include "mcp/method.hpp"
#include "mcp/request.hpp"
#include "mcp/server.hpp"
#include "mcp/shape.hpp"
#include "schemas/codec.hpp"

namespace mcp {

namespace json = boost::json;

namespace {

template <class Handler>
struct HandlerTraits;
template <class R, class P>
struct HandlerTraits<awaitable<R> (Server::*)(Request&, P)> {
  using Params = P;
};

// All our lists are one page, so there is no cursor that we could have given out. An empty one is
// what some clients send for the first page.
void expect_first_page(const ListParams& params) {
  if (params.cursor && !params.cursor->empty())
    throw Error(ErrorCode::invalid_params, "cursor: unknown; the list has one page");
}

}  // namespace

template <auto Handler>
awaitable<json::object> Server::typed(Server& self, Request& request) {
  using Params = typename HandlerTraits<decltype(Handler)>::Params;
  Params params;
  try {
    params = schemas::decode<Params>(request.params);
  } catch (const schemas::DecodeError& bad) {
    throw Error(ErrorCode::invalid_params, std::string("params.") + bad.what());
  }
  auto result = co_await (self.*Handler)(request, std::move(params));
  json::value encoded = schemas::encode(result);
  co_return std::move(encoded.get_object());
}

const std::map<std::string_view, Server::Method>& Server::methods() {
  using enum Method::Since;
  using Needs = Method::Needs;
  constexpr Caching kNone = Caching::none;
  constexpr Caching kForEveryone = Caching::for_everyone;
  constexpr Caching kOnlyNow = Caching::only_now;
  constexpr bool kAsks = true;
  static const std::map<std::string_view, Method> table{
      {"initialize", {&typed<&Server::initialize>, legacy}},
      {"ping", {&typed<&Server::ping>, legacy}},
      {"logging/setLevel", {&typed<&Server::set_level>, legacy}},
      {"server/discover", {&typed<&Server::discover>, modern, kForEveryone}},
      {"tools/list", {&typed<&Server::list_tools>, both, kForEveryone}},
      {"tools/call", {&typed<&Server::call_tool>, both, kNone, Needs::nothing, kAsks}},
      {"resources/list", {&typed<&Server::list_resources>, both, kForEveryone, Needs::resources}},
      {"resources/templates/list",
       {&typed<&Server::list_templates>, both, kForEveryone, Needs::resources}},
      {"resources/read", {&typed<&Server::read_resource>, both, kOnlyNow, Needs::resources, kAsks}},
      {"resources/subscribe", {&typed<&Server::subscribe>, legacy, kNone, Needs::resource_changes}},
      {"resources/unsubscribe",
       {&typed<&Server::unsubscribe>, legacy, kNone, Needs::resource_changes}},
      {"subscriptions/listen", {&typed<&Server::listen>, modern, kNone, Needs::changes}},
      {"prompts/list", {&typed<&Server::list_prompts>, both, kForEveryone, Needs::prompts}},
      {"prompts/get", {&typed<&Server::get_prompt>, both, kNone, Needs::prompts, kAsks}},
      {"completion/complete", {&typed<&Server::complete_argument>, both, kNone, Needs::completion}},
  };
  return table;
}

bool Server::offers(const Method& method) const {
  switch (method.needs) {
    case Method::Needs::nothing:
      break;
    case Method::Needs::resources:
      return offer_.resources;
    case Method::Needs::resource_changes:
      return announces_resources();
    case Method::Needs::changes:
      return announces_anything();
    case Method::Needs::prompts:
      return !offer_.prompts.empty();
    case Method::Needs::completion:
      return static_cast<bool>(offer_.complete);
  }
  return true;
}

const Server::Method& Server::method_for(const Request& request) const {
  auto found = methods().find(request.method);
  bool offered = found != methods().end();
  if (offered) {
    const Method& method = found->second;
    Era other = method.eras == Method::Since::legacy ? Era::modern : Era::legacy;
    offered = method.eras == Method::Since::both || request.era() != other;
    offered = offered && offers(method);
  }
  if (!offered)
    throw Error(ErrorCode::method_not_found,
                "Method not found: " + schemas::clipped(request.method));
  return found->second;
}

json::object Server::capabilities(Revision revision) const {
  json::object out;
  json::object& tools = out["tools"].emplace_object();
  if (announces(List::tools)) tools["listChanged"] = true;
  if (offer_.resources) {
    json::object& resources = out["resources"].emplace_object();
    if (announces_resources()) resources["subscribe"] = true;
    if (announces(List::resources)) resources["listChanged"] = true;
  }
  if (!offer_.prompts.empty()) {
    json::object& prompts = out["prompts"].emplace_object();
    if (announces(List::prompts)) prompts["listChanged"] = true;
  }
  if (offer_.complete && revision >= Revision::v2025_03_26) out["completions"].emplace_object();
  out["logging"].emplace_object();
  return out;
}

std::optional<std::string> Server::instructions() const {
  return instructions_.empty() ? std::nullopt : std::optional(instructions_);
}

// May come a second time, and after server/discover: it settles the legacy requests that follow.
awaitable<InitializeResult> Server::initialize(Request& request, InitializeParams params) {
  Revision revision = negotiate(params.protocolVersion);
  json::object capabilities_sent = std::move(params.capabilities).value_or(json::object());
  request.peer.legacy = Peer::Legacy{revision, essentials(capabilities_sent)};
  request.peer.log_level.reset();
  if (announces_anything()) {
    auto executor = co_await boost::asio::this_coro::executor;
    Interests interests;
    interests.lists = offer_.lists_change;
    subscription_of(request.peer, executor).want(std::move(interests));
  }
  InitializeResult result;
  result.protocolVersion = to_string(revision);
  result.capabilities = capabilities(revision);
  result.serverInfo = self_;
  fit(result.serverInfo, revision);
  result.instructions = instructions();
  co_return result;
}

// Only modern revisions are listed: a legacy one cannot be had by naming it in _meta.
awaitable<DiscoverResult> Server::discover(Request& request, Empty) {
  DiscoverResult result;
  result.supportedVersions.emplace_back(to_string(Revision::v2026_07_28));
  result.capabilities = capabilities(request.revision());
  result.instructions = instructions();
  co_return result;
}

awaitable<Empty> Server::ping(Request&, Empty) { co_return Empty(); }

awaitable<Empty> Server::set_level(Request& request, SetLevelParams params) {
  request.peer.log_level = params.level;
  co_return Empty();
}

awaitable<ListToolsResult> Server::list_tools(Request& request, ListParams params) {
  expect_first_page(params);
  ListToolsResult result;
  for (const Tool& tool : offer_.tools)
    fit(result.tools.emplace_back(tool.info), request.revision());
  if (offer_.tools_listed) offer_.tools_listed();
  co_return result;
}

awaitable<ListResourcesResult> Server::list_resources(Request& request, ListParams params) {
  expect_first_page(params);
  ListResourcesResult result;
  result.resources = offer_.resources->list();
  for (Resource& one : result.resources) fit(one, request.revision());
  co_return result;
}

awaitable<ListResourceTemplatesResult> Server::list_templates(Request& request, ListParams params) {
  expect_first_page(params);
  ListResourceTemplatesResult result;
  result.resourceTemplates = offer_.resources->templates();
  for (ResourceTemplate& one : result.resourceTemplates) fit(one, request.revision());
  co_return result;
}

awaitable<ListPromptsResult> Server::list_prompts(Request& request, ListParams params) {
  expect_first_page(params);
  ListPromptsResult result;
  for (const Prompt& prompt : offer_.prompts)
    fit(result.prompts.emplace_back(prompt.info), request.revision());
  co_return result;
}

awaitable<ReadResourceResult> Server::read_resource(Request& request, ReadResourceParams params) {
  RequestCall call(request, self_.name);
  ReadResourceResult result = co_await offer_.resources->read(call, std::move(params.uri));
  co_return result;
}

}  // namespace mcp
