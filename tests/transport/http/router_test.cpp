#include "transport/http/router.hpp"

#include <doctest/doctest.h>

#include "tests/transport/http/sockets.hpp"

namespace transport::http {
namespace {

awaitable<void> answer(Exchange& exchange, std::string text) {
  co_await exchange.reply(plain(200, std::move(text)));
}

Handler says(std::string text) {
  return [text = std::move(text)](Exchange& exchange) { return answer(exchange, text); };
}

// What a fresh router answers: its status line, and whatever else there is to see.
Router make_router() {
  Router router;
  router.guard([](Request& request) {
    request.response_headers.emplace_back("X-Guarded", "yes");
    return request.header("X-Evil") ? std::optional(plain(403, "evil")) : std::nullopt;
  });
  router.authenticate([](Request& request) {
    if (!request.header("Authorization")) return std::optional(plain(401, "who are you?"));
    request.principal = "somebody";
    return std::optional<Response>();
  });
  router.add("GET", "/mcp", says("get"));
  router.add("POST", "/mcp", says("post"));
  router.add("PUT", "/files/", says("file"));
  router.add("GET", "/files/deep/", says("deep file"));
  router.add("GET", "/healthz", says("alive"), true);
  return router;
}

TEST_CASE("every request passes the guards, then finds its handler, or is told what there is") {
  struct Row {
    const char* request;
    const char* headers;
    const char* status;
    const char* shows;
  };
  constexpr const char* kNobody = "";
  constexpr const char* kKnown = "Authorization: x\r\n";
  constexpr const char* kEvil = "X-Evil: x\r\nAuthorization: x\r\n";
  const Row rows[] = {
      {"GET /mcp", kKnown, "200", "get\n"},
      {"POST /mcp", kKnown, "200", "post\n"},
      {"POST /mcp?x=y", kKnown, "200", "post\n"},
      {"HEAD /mcp", kKnown, "200", "Content-Length: 4"},
      {"DELETE /mcp", kKnown, "405", "Allow: GET, POST\r\n"},
      {"OPTIONS /mcp", kKnown, "405", "Allow: GET, POST\r\n"},
      {"get /mcp", kKnown, "405", "Allow: GET, POST\r\n"},
      {"GET /mcp/", kKnown, "404", ""},
      {"GET /MCP", kKnown, "404", ""},
      {"GET /", kKnown, "404", "MCP is at /mcp"},
      {"PUT /files/abc", kKnown, "200", "file\n"},
      {"PUT /files/abc/def", kKnown, "200", "file\n"},
      {"PUT /files", kKnown, "404", ""},
      {"GET /files/deep/x", kKnown, "200", "deep file\n"},
      {"GET /mcp", kNobody, "401", "who are you?"},
      {"DELETE /mcp", kNobody, "401", "who are you?"},
      {"GET /nothing", kNobody, "401", "who are you?"},
      {"GET /healthz", kNobody, "200", "alive\n"},
      {"POST /healthz", kNobody, "405", "Allow: GET\r\n"},
      {"GET /mcp", kEvil, "403", "evil"},
      {"GET /healthz", kEvil, "403", "evil"},
      {"OPTIONS /nothing", kEvil, "403", "evil"},
      {"BREW /nothing", kEvil, "403", "evil"},
  };
  Router router = make_router();
  LiveListener listener([&router](Exchange& exchange) { return router.handle(exchange); });
  for (const Row& row : rows) {
    CAPTURE(std::string(row.request));
    CAPTURE(std::string(row.headers));
    RawClient client(listener.port());
    client.send(std::string(row.request) + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" +
                row.headers + "\r\n");
    std::string got = client.read_all();
    CHECK(got.substr(0, 13) == std::string("HTTP/1.1 ") + row.status + " ");
    CHECK(got.find(row.shows) != got.npos);
    CHECK(got.find("X-Guarded: yes\r\n") != got.npos);
  }
}

}  // namespace
}  // namespace transport::http
