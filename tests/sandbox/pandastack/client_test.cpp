#include "sandbox/pandastack/client.hpp"

#include <doctest/doctest.h>

#include <set>

#include "tests/sandbox/pandastack/scene.hpp"

namespace sandbox::pandastack {

TEST_CASE("each call is one request of the API") {
  struct Row {
    const char* name;
    AnyCall call;
    std::string answer;
    const char* method;
    const char* target;
    std::string body;
  };
  auto create = [] {
    CreateRequest request;
    request.template_name = "code-interpreter";
    request.ttl_seconds = 900;
    request.metadata = {{"pykeep", "1"}};
    return request;
  };
  auto restore = [] {
    CreateRequest request;
    request.from_snapshot = "n1";
    request.cpu = 8;
    request.memory_mb = 2048;
    return request;
  };
  const std::string snapshot = reply(201, R"({"id":"n1","sandbox_id":"s1"})");
  const std::string lifecycle =
      reply(200, R"({"ttl_seconds":900,"persistent":false,"idle_seconds":0})");
  const std::string ran = reply(200, R"({"stdout":"","stderr":"","exit_code":0})");
  const Row rows[] = {
      {"me", [](Client& c) { return ignoring(c.me()); }, reply(200, "{}"), "GET", "/v1/me", ""},
      {"create", [&](Client& c) { return ignoring(c.create(create())); }, reply(201, kSandbox),
       "POST", "/v1/sandboxes",
       R"({"template":"code-interpreter","ttl_seconds":900,"persistent":false,"metadata":{"pykeep":"1"}})"},
      {"restore", [&](Client& c) { return ignoring(c.create(restore())); }, reply(201, kSandbox),
       "POST", "/v1/sandboxes",
       R"({"from_snapshot":"n1","cpu":8,"memory_mb":2048,"ttl_seconds":300,"persistent":false,"metadata":{}})"},
      {"get", [](Client& c) { return ignoring(c.get("s1")); }, reply(200, kSandbox), "GET",
       "/v1/sandboxes/s1", ""},
      {"an id that would be a path", [](Client& c) { return ignoring(c.get("a/../b?c")); },
       reply(200, kSandbox), "GET", "/v1/sandboxes/a%2F..%2Fb%3Fc", ""},
      {"list", [](Client& c) { return ignoring(c.list()); }, reply(200, "null\n"), "GET",
       "/v1/sandboxes", ""},
      {"remove", [](Client& c) { return ignoring(c.remove("s1")); }, reply(204, ""), "DELETE",
       "/v1/sandboxes/s1", ""},
      {"set_lifecycle", [](Client& c) { return c.set_lifecycle("s1", 900); }, lifecycle, "PATCH",
       "/v1/sandboxes/s1/lifecycle", R"({"ttl_seconds":900})"},
      {"persistent", [](Client& c) { return c.set_lifecycle("s1", 1, false); }, lifecycle, "PATCH",
       "/v1/sandboxes/s1/lifecycle", R"({"ttl_seconds":1,"persistent":false})"},
      {"resume", [](Client& c) { return c.resume("s1"); }, reply(204, ""), "POST",
       "/v1/sandboxes/s1/resume", "{}"},
      {"hibernate", [](Client& c) { return c.hibernate("s1"); },
       reply(200, R"({"status":"hibernated"})"), "POST", "/v1/sandboxes/s1/hibernate", "{}"},
      {"wake", [](Client& c) { return c.wake("s1"); }, reply(200, R"({"status":"running"})"),
       "POST", "/v1/sandboxes/s1/wake", "{}"},
      {"wake what is awake", [](Client& c) { return c.wake("s1"); },
       reply(500, R"({"error":"sandbox already running"})"), "POST", "/v1/sandboxes/s1/wake", "{}"},
      {"snapshot", [](Client& c) { return ignoring(c.snapshot("s1")); }, snapshot, "POST",
       "/v1/sandboxes/s1/snapshots", "{}"},
      {"remove_snapshot", [](Client& c) { return ignoring(c.remove_snapshot("n1")); },
       reply(200, R"({"deleted":"n1"})"), "DELETE", "/v1/snapshots/n1", ""},
      {"exec", [](Client& c) { return ignoring(c.exec("s1", "echo \"a\"", 1500ms)); }, ran, "POST",
       "/v1/sandboxes/s1/exec", R"({"cmd":"echo \"a\"","timeout_seconds":2})"},
      {"exec_stream", [](Client& c) { return ignoring(c.exec_stream("s1", "true", 5s)); },
       reply(200, "", "", "text/event-stream"), "POST", "/v1/sandboxes/s1/exec/stream",
       R"({"cmd":"true","timeout_seconds":5})"},
      {"put_file",
       [](Client& c) { return c.put_file("s1", "/workspace/a b&c", std::string("\0\1\xff", 3)); },
       reply(200, R"({"bytes":3,"path":"/workspace/a b&c"})"), "PUT",
       "/v1/sandboxes/s1/fs?path=%2Fworkspace%2Fa%20b%26c", std::string("\0\1\xff", 3)},
      {"put an empty file", [](Client& c) { return c.put_file("s1", "/a", ""); },
       reply(200, R"({"bytes":0})"), "PUT", "/v1/sandboxes/s1/fs?path=%2Fa", ""},
      {"proxy", [](Client& c) { return ignoring(c.proxy("s1", proxy_request())); },
       reply(200, "answer"), "POST", "/v1/sandboxes/s1/proxy/9000/exchange?after=3",
       std::string("\0\1\2", 3)},
  };
  std::set<std::string> request_ids;
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Scene scene({row.answer});
    CHECK_NOTHROW(scene.run(row.call(*scene.client)));
    auto seen = scene.server.seen();
    REQUIRE(seen.size() == 1);
    CHECK(seen[0].method == row.method);
    CHECK(seen[0].target == row.target);
    CHECK(seen[0].body == row.body);
    CHECK(seen[0].header("authorization") == std::string("Bearer ") + kKey);
    CHECK(seen[0].header("x-request-id").starts_with("pykeep-"));
    CHECK(seen[0].header("x-request-id").size() <= 64);
    request_ids.insert(seen[0].header("x-request-id"));
    bool has_body =
        seen[0].method == "POST" || seen[0].method == "PUT" || seen[0].method == "PATCH";
    CHECK(seen[0].header("content-length") == (has_body ? std::to_string(row.body.size()) : ""));
    bool raw = seen[0].method == "PUT" || std::string(row.name) == "proxy";
    CHECK(seen[0].header("content-type") == (!has_body ? ""
                                             : raw     ? "application/octet-stream"
                                                       : "application/json"));
  }
  CHECK(request_ids.size() == std::size(rows));
}

TEST_CASE("calls that make no sense are not made") {
  Scene scene(std::vector<std::string>{});
  Client& client = *scene.client;
  const AnyCall calls[] = {
      [](Client& c) { return ignoring(c.get("")); },
      [](Client& c) { return ignoring(c.get("..")); },
      [](Client& c) { return ignoring(c.remove_snapshot("")); },
      [](Client& c) { return c.set_lifecycle("s1", 0); },
      [](Client& c) { return c.put_file("s1", "relative", "abc"); },
      [](Client& c) { return c.put_file("s1", "/a", std::string(kMaxUpload + 1, 'x')); },
      [](Client& c) {
        CreateRequest request;
        request.ttl_seconds = 0;
        return ignoring(c.create(request));
      },
      [](Client& c) {
        ProxyRequest request = proxy_request();
        request.target = "exchange";
        return ignoring(c.proxy("s1", request));
      },
      [](Client& c) {
        ProxyRequest request = proxy_request();
        request.headers = {{"X", "a\r\nAuthorization: b"}};
        return ignoring(c.proxy("s1", request));
      },
  };
  for (const AnyCall& call : calls) CHECK_THROWS_AS(scene.run(call(client)), std::invalid_argument);
  CHECK(scene.server.seen().empty());
}

TEST_CASE("absence is a value") {
  const std::string none = reply(404, R"({"error":"not found"})");
  const std::string no_route = reply(404, "404 page not found\n", "", "text/plain; charset=utf-8");
  for (const std::string& answer : {none, no_route}) {
    Scene scene(std::vector<std::string>(20, answer));
    CHECK_FALSE(scene.run(scene.client->remove("s1")));
    CHECK_FALSE(scene.run(scene.client->remove_snapshot("n1")));
    CHECK(scene.server.seen().size() == 4);  // each asked once more
    CHECK(scene.failure_of(scene.client->get("s1"))->status == 404);
  }
}

TEST_CASE("a request to a port of the guest") {
  auto read = [](Answer& answer) -> awaitable<std::string> {
    std::string body;
    while (auto bytes = co_await answer.read()) body += *bytes;
    co_return std::move(body);
  };
  SUBCASE("is answered by the guest's server, byte by byte") {
    Scene scene([](Peer& peer, const Seen& seen) {
      peer.send("HTTP/1.1 200 OK\r\nX-Epoch: e1\r\nTransfer-Encoding: chunked\r\n\r\n");
      for (char c : seen.body) peer.send(std::string("1\r\n") + c + "\r\n");
      peer.send("0\r\n\r\n");
    });
    auto answer = scene.run(scene.client->proxy("s1", proxy_request()));
    CHECK(*answer->head().find("x-epoch") == "e1");
    CHECK(scene.run(read(*answer)) == std::string("\0\1\2", 3));
    CHECK(scene.server.seen()[0].header("x-pykeep-secret") == "s");
  }
  SUBCASE("or refused by it, in its words") {
    Scene scene({reply(409, R"({"error":"another epoch","epoch":"e2"})")});
    auto error = scene.failure_of(scene.client->proxy("s1", proxy_request()));
    CHECK(error->status == 409);
    CHECK(error->body == R"({"error":"another epoch","epoch":"e2"})");
    CHECK(contains(error->what(), "reach port 9000 of a sandbox"));
  }
}

}  // namespace sandbox::pandastack
