#include "transport/http/host_policy.hpp"

#include <doctest/doctest.h>

namespace transport::http {
namespace {

constexpr const char* kAbsent = nullptr;

HostPolicy policy(const char* address) {
  HostPolicy::Allowed allowed;
  allowed.address = address;
  allowed.hosts.push_back("Keep.example.com");
  allowed.hosts.push_back("proxy.example.com:8443");
  allowed.origins.push_back("https://App.example.com");
  return HostPolicy(allowed);
}

Request request_with(const char* host, const char* origin = kAbsent) {
  Request request;
  request.method = "POST";
  request.path = "/anything";
  if (host) request.headers.emplace("Host", host);
  if (origin) request.headers.emplace("Origin", origin);
  return request;
}

int status(const std::optional<Response>& refusal) { return refusal ? refusal->status : 0; }

TEST_CASE("a server answers to its own names only") {
  struct Row {
    const char* host;
    int on_loopback, on_one_address, on_all;  // 0: passes
  };
  const Row rows[] = {
      {kAbsent, 400, 400, 400},
      {"", 403, 403, 403},
      {"127.0.0.1:8420", 0, 0, 0},
      {"localhost:8420", 0, 0, 0},
      {"LOCALHOST", 0, 0, 0},
      {"[::1]:8420", 0, 0, 0},
      {"localhost:9999", 0, 0, 0},  // a forwarded port
      {"keep.example.com", 0, 0, 0},
      {"keep.example.com:1", 0, 0, 0},
      {"proxy.example.com:8443", 0, 0, 0},
      {"proxy.example.com", 403, 403, 403},
      {"192.0.2.7:8420", 403, 0, 0},
      {"198.51.100.9:8420", 403, 403, 0},
      {"evil.example.com", 403, 403, 403},
      {"evil.test:8420", 403, 403, 403},
      {"localhost.evil.test", 403, 403, 403},
      {"127.0.0.1.evil.test", 403, 403, 403},
      {"localhost@evil.test", 403, 403, 403},
      {"localhost:8420:8420", 403, 403, 403},
      {"localhost:abc", 403, 403, 403},
      {"localhost.", 403, 403, 403},
      {"::1", 403, 403, 403},
      {"[::1", 403, 403, 403},
      {"2130706433", 403, 403, 403},
      {"0x7f.1", 403, 403, 403},
      {"[::ffff:198.51.100.9]", 403, 403, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.host ? row.host : "(absent)"));
    Request request = request_with(row.host);
    CHECK(status(policy("127.0.0.1").check_host(request)) == row.on_loopback);
    CHECK(status(policy("192.0.2.7").check_host(request)) == row.on_one_address);
    CHECK(status(policy("0.0.0.0").check_host(request)) == row.on_all);
  }
  Request twice = request_with("localhost");
  twice.headers.emplace("host", "evil.test");
  CHECK(status(policy("127.0.0.1").check_host(twice)) == 400);
}

TEST_CASE("web pages of other origins are kept out") {
  struct Row {
    const char* origin;
    int refused;  // 0: passes
    bool told;    // by CORS headers
  };
  const Row rows[] = {
      {kAbsent, 0, false},
      {"http://localhost:8420", 0, false},
      {"https://localhost:8420", 0, false},
      {"HTTP://LocalHost:8420", 0, false},
      {"https://app.example.com", 0, true},
      {"http://app.example.com", 403, false},
      {"https://app.example.com:444", 403, false},
      {"https://app.example.com.evil.test", 403, false},
      {"https://evil.test", 403, false},
      {"http://localhost.evil.test", 403, false},
      {"http://localhost", 403, false},  // another port is another origin
      {"null", 403, false},
      {"", 403, false},
      {"file://", 403, false},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.origin ? row.origin : "(absent)"));
    Request request = request_with("localhost:8420", row.origin);
    CHECK(status(policy("127.0.0.1").check_origin(request)) == row.refused);
    CHECK(request.response_headers.empty() == !row.told);
  }
  Request cross_site = request_with("localhost:8420");
  cross_site.headers.emplace("Sec-Fetch-Site", "cross-site");
  CHECK(status(policy("127.0.0.1").check_origin(cross_site)) == 403);
}

TEST_CASE("a page that may call is told what it may send and read") {
  Request request = request_with("localhost:8420", "https://app.example.com");
  request.method = "OPTIONS";
  request.headers.emplace("Access-Control-Request-Method", "POST");
  request.headers.emplace("Access-Control-Request-Headers", "authorization,mcp-param-city");
  auto answer = policy("127.0.0.1").check_origin(request);
  REQUIRE(answer);
  CHECK(answer->status == 204);
  Headers headers(answer->headers.begin(), answer->headers.end());
  headers.insert(request.response_headers.begin(), request.response_headers.end());
  CHECK(headers.find("Access-Control-Allow-Origin")->second == "https://app.example.com");
  CHECK(headers.find("Access-Control-Allow-Headers")->second == "authorization,mcp-param-city");
  CHECK(headers.find("Access-Control-Expose-Headers")->second.find("Mcp-Session-Id") == 0);
  CHECK(headers.find("Vary")->second == "Origin");
  CHECK(headers.count("Access-Control-Allow-Credentials") == 0);
}

TEST_CASE("a refusal repeats nothing that could do harm") {
  Request request = request_with("evil\r\nX: y\x1b[2J");
  auto refusal = policy("127.0.0.1").check_host(request);
  REQUIRE(refusal);
  CHECK(refusal->body.find("evil??X: y?[2J") != std::string::npos);
}

}  // namespace
}  // namespace transport::http
