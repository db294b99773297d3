#include "transport/http/host_policy.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

namespace transport::http {

namespace asio = boost::asio;

namespace {

// "name", "1.2.3.4" or "[::1]"; whatever follows is the port.
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(0, host.find(']') + 1);
  return host.substr(0, host.find(':'));
}

bool is_port(std::string_view rest) {
  if (rest.empty()) return true;
  return rest.size() >= 2 && rest.size() <= 6 && rest[0] == ':' &&
         rest.find_first_not_of("0123456789", 1) == rest.npos;
}

std::optional<asio::ip::address> numeric(std::string_view name) {
  if (name.starts_with('[') && name.ends_with(']')) name = name.substr(1, name.size() - 2);
  boost::system::error_code failed;
  auto address = asio::ip::make_address(std::string(name), failed);
  if (failed) return std::nullopt;
  return address;
}

// What of it a message may repeat: it comes from whoever sent the request.
std::string shown(std::string_view value) {
  std::string text(value.substr(0, 100));
  for (char& c : text)
    if (c < 0x20 || c > 0x7e) c = '?';
  return text;
}

std::string authority(std::string_view origin) {
  std::size_t at = origin.find("://");
  bool web = origin.starts_with("http://") || origin.starts_with("https://");
  return web ? std::string(origin.substr(at + 3)) : "";
}

bool is_header_list(std::string_view text) {
  return text.size() <= 1000 &&
         text.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_, ") == text.npos;
}

}  // namespace

HostPolicy::HostPolicy(Allowed allowed) : allowed_(std::move(allowed)) {
  auto bound = numeric(allowed_.address);
  any_address_ = bound && bound->is_unspecified();
  for (std::string& host : allowed_.hosts) host = lower_case(host);
  for (std::string& origin : allowed_.origins) origin = lower_case(origin);
}

bool HostPolicy::is_known(std::string_view host) const {
  std::string_view name = without_port(host);
  if (name.empty() || !is_port(host.substr(name.size()))) return false;
  for (const std::string& allowed : allowed_.hosts)
    if (allowed == host || allowed == name) return true;
  if (name == "localhost") return true;
  auto address = numeric(name);
  if (!address || (address->is_v6() && !name.starts_with('['))) return false;
  return any_address_ || address->is_loopback() || address == numeric(allowed_.address);
}

std::optional<Response> HostPolicy::check_host(const Request& request) const {
  const std::string* host = request.header("Host");
  if (!host) return plain(400, "The request has no Host header.");
  if (request.headers.count("Host") > 1) return plain(400, "The request has two Host headers.");
  if (is_known(lower_case(*host))) return std::nullopt;
  return plain(403, "This server does not answer to the name \"" + shown(*host) +
                        "\" (protection from DNS rebinding). If it should, start it with "
                        "--allowed-host.");
}

std::optional<Response> HostPolicy::check_origin(Request& request) const {
  const std::string* sent = request.header("Origin");
  const std::string* site = request.header("Sec-Fetch-Site");
  if (!sent && site && lower_case(*site) == "cross-site")
    return plain(403, "Web pages of other sites may not call this server.");
  if (!sent) return std::nullopt;
  if (request.headers.count("Origin") > 1) return plain(400, "The request has two Origin headers.");
  std::string origin = lower_case(*sent);
  const auto& origins = allowed_.origins;
  bool allowed = std::find(origins.begin(), origins.end(), origin) != origins.end();
  std::string from = authority(origin);
  const std::string* host = request.header("Host");
  bool own = host && !from.empty() && from == lower_case(*host);
  if (!allowed && !own)
    return plain(403, "Web pages of the origin \"" + shown(*sent) +
                          "\" may not call this server. If they should, start it with "
                          "--allowed-origin.");
  if (!allowed) return std::nullopt;
  auto& headers = request.response_headers;
  headers.emplace_back("Access-Control-Allow-Origin", *sent);
  headers.emplace_back("Vary", "Origin");
  headers.emplace_back("Access-Control-Expose-Headers",
                       "Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate");
  if (request.method != "OPTIONS" || !request.header("Access-Control-Request-Method"))
    return std::nullopt;
  Response preflight;
  preflight.status = 204;
  preflight.headers.emplace_back("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE");
  const std::string* wished = request.header("Access-Control-Request-Headers");
  // Tools may define headers of their own (Mcp-Param-…), so there is no list to hold this to.
  if (wished && is_header_list(*wished))
    preflight.headers.emplace_back("Access-Control-Allow-Headers", *wished);
  if (request.header("Access-Control-Request-Private-Network"))
    preflight.headers.emplace_back("Access-Control-Allow-Private-Network", "true");
  preflight.headers.emplace_back("Access-Control-Max-Age", "600");
  return preflight;
}

}  // namespace transport::http
