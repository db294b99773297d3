#pragma once

#include <map>
#include <string>
#include <vector>

#include "transport/http/exchange.hpp"

namespace transport::http {

// Something that looks at a request before any handler does: nullopt to let it pass, else the
// refusal. May fill in `principal`. In the order they were added.
using Guard = std::function<std::optional<Response>(Request&)>;

// Which handler serves a path and verb. Guards see every request, also those of unknown paths:
// Host and Origin are checked for all of them (DNS rebinding). Unknown path: 404. Known path, other
// verb: 405 with `Allow`. OPTIONS is a guard's business (CORS) and otherwise 405.
class Router {
 public:
  void guard(Guard guard);
  // `path` is exact, or a prefix when it ends in '/'. Open paths are served without the guards that
  // were added with `authenticates`: health checks and OAuth metadata.
  void add(std::string method, std::string path, Handler handler, bool open = false);
  // A guard that open paths do not pass through.
  void authenticate(Guard guard);

  awaitable<void> handle(Exchange& exchange) const;

 private:
  struct Route {
    Handler handler;
    bool open = false;
  };
  const std::map<std::string, Route>* find(std::string_view path) const;

  std::vector<Guard> guards_;
  std::vector<Guard> authentication_;
  std::map<std::string, std::map<std::string, Route>, std::less<>> exact_;
  std::map<std::string, std::map<std::string, Route>, std::less<>> prefixes_;
};

}  // namespace transport::http
