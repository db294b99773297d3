#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/http/exchange.hpp"

namespace transport::http {

// Something that looks at a request before any handler does: nullopt to let it pass, else the
// refusal. May fill in `principal` and `response_headers`. In the order they were added.
using Guard = std::function<std::optional<Response>(Request&)>;

// Which handler serves a path and verb. Guards see every request, also those of unknown paths:
// Host and Origin are checked for all of them (DNS rebinding). Unknown path: 404. Known path, other
// verb: 405 with `Allow`. HEAD is served by GET's handler where it has none of its own; the
// connection leaves the body out. OPTIONS is a guard's business (CORS) and otherwise 405.
class Router {
 public:
  void guard(Guard guard);
  // A guard that open paths do not pass through; after the others. Unknown paths do: who has no
  // token learns nothing about what is served.
  void authenticate(Guard guard);
  // `path` is exact, or a prefix when it ends in '/': the longest counts. Open paths (all verbs of
  // a path alike) are served without authentication: health checks and OAuth metadata.
  void add(std::string method, std::string path, Handler handler, bool open = false);

  // The router outlives the coroutine.
  awaitable<void> handle(Exchange& exchange) const;

 private:
  struct Route {
    Handler handler;
    bool open = false;
  };
  using Verbs = std::map<std::string, Route>;
  struct Choice {
    const Handler* handler = nullptr;
    std::optional<Response> refusal;
  };
  Choice choose(Request& request) const;
  const Verbs* find(std::string_view path) const;

  std::vector<Guard> guards_;
  std::vector<Guard> authentication_;
  std::map<std::string, Verbs, std::less<>> exact_;
  std::map<std::string, Verbs, std::less<>> prefixes_;
};

}  // namespace transport::http
