#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/http/exchange.hpp"

namespace transport::http {

// Who may talk to us by name, and which web pages may. A page that a user of this machine visits
// can send requests to it: by DNS rebinding under a name of its own (so `Host` is checked), and
// from its own origin (so `Origin` is). Both on every request, whatever its path and verb
// (MCP 2025-11-25, Streamable HTTP, "Security Warning").
class HostPolicy {
 public:
  struct Allowed {
    std::string address;               // bound, numeric
    std::vector<std::string> hosts;    // "name" with any port, or "name:port"
    std::vector<std::string> origins;  // "https://name[:port]", as browsers send it
  };
  explicit HostPolicy(Allowed allowed);

  // To be used as guards of a Router, in this order.
  //
  // Loopback names, the bound address and `hosts` pass, loopback ones with any port (forwarded
  // ports). Bound to all addresses, so does every numeric one: rebinding takes a name. Missing or
  // ambiguous: 400; others: 403.
  std::optional<Response> check_host(const Request& request) const;
  // No Origin passes, unless the browser says that the request comes from another site; so do the
  // own host and `origins`. `null` and others: 403. Pages of `origins` are told so (CORS), and
  // their preflights end here.
  std::optional<Response> check_origin(Request& request) const;

 private:
  bool is_known(std::string_view host) const;

  Allowed allowed_;
  bool any_address_ = false;
};

}  // namespace transport::http
