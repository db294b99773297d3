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
  constexpr Caching kNone = Caching::none;
  constexpr Caching kForEveryone = Caching::for_everyone;
  constexpr Method::Needs kResources = Method::Needs::resources;
  static const std::map<std::string_view, Method> table{
      {"initialize", {&typed<&Server::initialize>, legacy}},
      {"ping", {&typed<&Server::ping>, legacy}},
      {"logging/setLevel", {&typed<&Server::set_level>, legacy}},
      {"server/discover", {&typed<&Server::discover>, modern, kForEveryone}},
      {"tools/list", {&typed<&Server::list_tools>, both, kForEveryone}},
      {"tools/call", {&typed<&Server::call_tool>, both, kNone}},
      {"resources/list", {&typed<&Server::list_resources>, both, kForEveryone, kResources}},
      {"resources/templates/list",
       {&typed<&Server::list_templates>, both, kForEveryone, kResources}},
      {"resources/read", {&typed<&Server::read_resource>, both, Caching::only_now, kResources}},
  };
  return table;
}

const Server::Method& Server::method_for(const Request& request) const {
  auto found = methods().find(request.method);
  bool offered = found != methods().end();
  if (offered) {
    const Method& method = found->second;
    Era other = method.eras == Method::Since::legacy ? Era::modern : Era::legacy;
    offered = method.eras == Method::Since::both || request.era() != other;
    offered = offered && (method.needs == Method::Needs::nothing || resources_);
  }
  if (!offered)
    throw Error(ErrorCode::method_not_found,
                "Method not found: " + schemas::clipped(request.method));
  return found->second;
}

json::object Server::capabilities() const {
  json::object out;
  out["tools"].emplace_object();
  if (resources_) out["resources"].emplace_object();
  out["logging"].emplace_object();
  return out;
}

std::optional<std::string> Server::instructions() const {
  return instructions_.empty() ? std::nullopt : std::optional(instructions_);
}

// May come a second time, and after server/discover: it settles the legacy requests that follow.
awaitable<InitializeResult> Server::initialize(Request& request, InitializeParams params) {
  Revision revision = negotiate(params.protocolVersion);
  request.peer.legacy =
      Peer::Legacy{revision, std::move(params.capabilities).value_or(json::object())};
  request.peer.log_level.reset();
  InitializeResult result;
  result.protocolVersion = to_string(revision);
  result.capabilities = capabilities();
  result.serverInfo = self_;
  fit(result.serverInfo, revision);
  result.instructions = instructions();
  co_return result;
}

// Only modern revisions are listed: a legacy one cannot be had by naming it in _meta.
awaitable<DiscoverResult> Server::discover(Request&, Empty) {
  DiscoverResult result;
  result.supportedVersions.emplace_back(to_string(Revision::v2026_07_28));
  result.capabilities = capabilities();
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
  for (const Tool& tool : tools_) fit(result.tools.emplace_back(tool.info), request.revision());
  co_return result;
}

// Nothing is listed: what is readable belongs to sessions, and a list may not vary with its reader.
awaitable<ListResourcesResult> Server::list_resources(Request&, ListParams params) {
  expect_first_page(params);
  co_return ListResourcesResult();
}

awaitable<ListResourceTemplatesResult> Server::list_templates(Request& request, ListParams params) {
  expect_first_page(params);
  ListResourceTemplatesResult result;
  result.resourceTemplates = resources_->templates();
  for (ResourceTemplate& one : result.resourceTemplates) fit(one, request.revision());
  co_return result;
}

awaitable<ReadResourceResult> Server::read_resource(Request& request, ReadResourceParams params) {
  RequestCall call(request, self_.name);
  ReadResourceResult result = co_await resources_->read(call, std::move(params.uri));
  co_return result;
}

}  // namespace mcp
