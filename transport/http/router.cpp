#include "transport/http/router.hpp"

namespace transport::http {

namespace {

const std::optional<Response> kPass;

std::optional<Response> ask(const std::vector<Guard>& guards, Request& request) {
  for (const Guard& guard : guards)
    if (auto refusal = guard(request)) return refusal;
  return kPass;
}

}  // namespace

void Router::guard(Guard guard) { guards_.push_back(std::move(guard)); }

void Router::authenticate(Guard guard) { authentication_.push_back(std::move(guard)); }

void Router::add(std::string method, std::string path, Handler handler, bool open) {
  auto& table = path.back() == '/' && path != "/" ? prefixes_ : exact_;
  table[std::move(path)][std::move(method)] = Route{std::move(handler), open};
}

const Router::Verbs* Router::find(std::string_view path) const {
  if (auto exact = exact_.find(path); exact != exact_.end()) return &exact->second;
  for (std::size_t slash = path.rfind('/'); slash != path.npos && slash > 0;
       slash = path.rfind('/', slash - 1)) {
    auto prefix = prefixes_.find(path.substr(0, slash + 1));
    if (prefix != prefixes_.end()) return &prefix->second;
  }
  return nullptr;
}

Router::Choice Router::choose(Request& request) const {
  Choice choice;
  choice.refusal = ask(guards_, request);
  if (choice.refusal) return choice;
  const Verbs* verbs = find(request.path);
  bool open = verbs && verbs->begin()->second.open;
  if (!open) choice.refusal = ask(authentication_, request);
  if (choice.refusal) return choice;
  if (!verbs) {
    choice.refusal = plain(404, "Nothing is served at this path. MCP is at /mcp.");
    return choice;
  }
  auto route = verbs->find(request.method);
  if (route == verbs->end() && request.method == "HEAD") route = verbs->find("GET");
  if (route != verbs->end()) {
    choice.handler = &route->second.handler;
    return choice;
  }
  std::string allow;
  for (const auto& [verb, unused] : *verbs) allow += (allow.empty() ? "" : ", ") + verb;
  choice.refusal = plain(405, "This path takes " + allow + ".");
  choice.refusal->headers.emplace_back("Allow", allow);
  return choice;
}

awaitable<void> Router::handle(Exchange& exchange) const {
  Choice choice = choose(exchange.request());
  if (choice.handler)
    co_await (*choice.handler)(exchange);
  else
    co_await exchange.reply(std::move(*choice.refusal));
}

}  // namespace transport::http
