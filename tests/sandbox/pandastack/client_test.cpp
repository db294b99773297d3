#include "sandbox/pandastack/client.hpp"

#include <doctest/doctest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <set>
#include <sstream>

#include "async/task_group.hpp"
#include "tests/sandbox/pandastack/scripted_server.hpp"

namespace sandbox::pandastack {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr const char* kKey = "pds_0123456789abcdef0123456789abcdef";
constexpr const char* kSandbox = R"({"id":"s1","template":"code-interpreter","status":"running"})";
const std::string kWarmUp =
    reply(500, R"({"error":"ssh: dial tcp 10.200.0.6:22: connect: connection refused"})");

Settings settings_for(const ScriptedServer& server) {
  Settings settings;
  settings.base = server.url("/v1");
  settings.key = kKey;
  settings.key_from = "PANDASTACK_API_KEY";
  settings.warm_up = 60ms;
  return settings;
}

Patience impatient() {
  Patience patience;
  patience.not_found = 1ms;
  patience.warm_up_first = 10ms;
  patience.warm_up_most = 20ms;
  patience.unit = 1ms;
  return patience;
}

// A client of a server with this script.
struct Scene {
  explicit Scene(std::vector<std::string> script) : Scene(replies(std::move(script))) {}
  explicit Scene(ScriptedServer::Handler handler)
      : server(std::move(handler)),
        client(std::make_unique<Client>(loop.io.get_executor(), settings_for(server), HttpOptions(),
                                        impatient())) {}

  template <class T>
  T run(awaitable<T> work) {
    return loop.run(std::move(work));
  }
  template <class T>
  std::optional<Error> failure_of(awaitable<T> work) {
    try {
      loop.run(std::move(work));
    } catch (const Error& error) {
      return error;
    }
    return std::nullopt;
  }

  ScriptedServer server;
  Loop loop;
  std::unique_ptr<Client> client;
};

// All that is logged while it lives.
class Log {
 public:
  Log() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("test", sink));
    spdlog::set_level(spdlog::level::trace);
  }
  ~Log() { spdlog::set_default_logger(before_); }
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

// A call whose result does not matter.
using AnyCall = std::function<awaitable<void>(Client&)>;

template <class T>
awaitable<void> ignoring(awaitable<T> call) {
  co_await std::move(call);
}

ProxyRequest proxy_request() {
  ProxyRequest request;
  request.port = 9000;
  request.target = "/exchange?after=3";
  request.headers = {{"X-Pykeep-Secret", "s"}, {"Content-Type", "application/octet-stream"}};
  request.body = std::string("\0\1\2", 3);
  return request;
}

}  // namespace

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
      {"lifecycle", [](Client& c) { return ignoring(c.lifecycle("s1")); }, lifecycle, "GET",
       "/v1/sandboxes/s1/lifecycle", ""},
      {"set_lifecycle", [](Client& c) { return ignoring(c.set_lifecycle("s1", 900)); }, lifecycle,
       "PATCH", "/v1/sandboxes/s1/lifecycle", R"({"ttl_seconds":900})"},
      {"persistent", [](Client& c) { return ignoring(c.set_lifecycle("s1", {}, true)); }, lifecycle,
       "PATCH", "/v1/sandboxes/s1/lifecycle", R"({"persistent":true})"},
      {"pause", [](Client& c) { return c.pause("s1"); }, reply(204, ""), "POST",
       "/v1/sandboxes/s1/pause", "{}"},
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
      {"snapshots", [](Client& c) { return ignoring(c.snapshots("s 1")); },
       reply(200, R"({"snapshots":[]})"), "GET", "/v1/snapshots?sandbox_id=s%201", ""},
      {"get_snapshot", [](Client& c) { return ignoring(c.get_snapshot("n1")); }, snapshot, "GET",
       "/v1/snapshots/n1", ""},
      {"remove_snapshot", [](Client& c) { return ignoring(c.remove_snapshot("n1")); },
       reply(200, R"({"deleted":"n1"})"), "DELETE", "/v1/snapshots/n1", ""},
      {"fork_tree",
       [](Client& c) {
         return ignoring(c.fork_tree("s1", 2, {{"run", "7"}}));
       },
       reply(201, R"({"tree_id":"t","children":[]})"), "POST", "/v1/sandboxes/s1/fork-tree",
       R"({"count":2,"metadata":{"run":"7"}})"},
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
      {"get_file", [](Client& c) { return ignoring(c.get_file("s1", "/a")); },
       reply(200, "bytes", "", "application/octet-stream"), "GET", "/v1/sandboxes/s1/fs?path=%2Fa",
       ""},
      {"open_file", [](Client& c) { return ignoring(c.open_file("s1", "/a")); },
       reply(200, "bytes", "", "application/octet-stream"), "GET", "/v1/sandboxes/s1/fs?path=%2Fa",
       ""},
      {"stat", [](Client& c) { return ignoring(c.stat("s1", "/a")); },
       reply(200, R"({"name":"a","size":120})"), "GET", "/v1/sandboxes/s1/fs/stat?path=%2Fa", ""},
      {"directory", [](Client& c) { return ignoring(c.directory("s1", "/")); },
       reply(200, R"({"entries":null,"path":"/"})"), "GET", "/v1/sandboxes/s1/fs/dir?path=%2F", ""},
      {"remove_file", [](Client& c) { return c.remove_file("s1", "/a"); }, reply(204, ""), "DELETE",
       "/v1/sandboxes/s1/fs?path=%2Fa", ""},
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
      [](Client& c) { return ignoring(c.set_lifecycle("s1", 0)); },
      [](Client& c) { return ignoring(c.fork_tree("s1", 17, {})); },
      [](Client& c) { return ignoring(c.fork_tree("s1", 0, {})); },
      [](Client& c) { return ignoring(c.stat("s1", "relative")); },
      [](Client& c) { return c.remove_file("s1", ""); },
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
    CHECK_FALSE(scene.run(scene.client->snapshots("s1")));
    CHECK_FALSE(scene.run(scene.client->get_snapshot("n1")));
    CHECK_FALSE(scene.run(scene.client->stat("s1", "/a")));
    CHECK(scene.server.seen().size() == 10);  // each asked once more
    CHECK(scene.failure_of(scene.client->get("s1"))->status == 404);
  }
}

TEST_CASE("what failed, in words and for the program") {
  struct Row {
    std::string answer;
    int status;
    const char* message;
    Outcome outcome;
    std::vector<std::string> says;
    int retry_after = 0;
  };
  constexpr Outcome refused = Outcome::refused, unknown = Outcome::unknown;
  const std::string plain = "text/plain; charset=utf-8";
  const Row rows[] = {
      {reply(400, R"({"error":"unknown template \"x\": not in the template catalog"})"),
       400,
       "unknown template \"x\": not in the template catalog",
       refused,
       {"HTTP 400"}},
      {reply(401, R"({"detail":"invalid api token","error":"unauthorized"})"),
       401,
       "unauthorized: invalid api token",
       refused,
       {"Check the key", "PANDASTACK_API_KEY"}},
      {reply(402, R"({"error":"fork-tree needs the Pro plan"})"),
       402,
       "fork-tree needs the Pro plan",
       refused,
       {"fork-tree needs the Pro plan", "plan"}},
      {reply(403, R"({"error":"template not accessible"})"),
       403,
       "template not accessible",
       refused,
       {"rights"}},
      {reply(409, R"({"error":"sandbox not running (paused or hibernated) — wake it"})"),
       409,
       "sandbox not running (paused or hibernated) — wake it",
       refused,
       {}},
      {reply(411, "<html>Length Required</html>", "", "text/html"),
       411,
       "<html>Length Required</html>",
       refused,
       {}},
      {reply(405, "Method Not Allowed\n", "", plain), 405, "Method Not Allowed", refused, {}},
      {reply(500, R"({"error":"network allocate: no slots"})"),
       500,
       "network allocate: no slots",
       unknown,
       {"may have been done"}},
      {reply(500, "{\"error\":\"internal server error\"}\n", "", plain),
       500,
       "internal server error",
       unknown,
       {}},
      {reply(502, ""), 502, "", unknown, {"HTTP 502"}},
      {reply(502, R"({"error":"agent unreachable"})"), 502, "agent unreachable", unknown, {}},
      {reply(503, R"({"error":"auto-wake: wake resume: ..."})"),
       503,
       "auto-wake: wake resume: ...",
       unknown,
       {}},
      {reply(501, R"({"error":"not available in this build"})", "Retry-After: 7\r\n"),
       501,
       "not available in this build",
       refused,
       {},
       7},
      {reply(301, "", "Location: https://elsewhere.example/v1/sandboxes\r\n"),
       301,
       "",
       refused,
       {"redirects", "PANDASTACK_API"}},
      {reply(404, R"({"error":{"code":"sandbox.not_found","message":"No sandbox sb_abc123"}})"),
       404,
       "No sandbox sb_abc123",
       refused,
       {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.answer);
    Scene scene({row.answer});
    auto error = scene.failure_of(scene.client->snapshot("s1"));
    REQUIRE(error);
    std::string what = error->what();
    CAPTURE(what);
    CHECK(error->failure == Failure::answered);
    CHECK(error->status == row.status);
    CHECK(error->message == row.message);
    CHECK(error->outcome == row.outcome);
    CHECK(error->retry_after.value_or(0s).count() == row.retry_after);
    CHECK(what.starts_with("PandaStack could not snapshot a sandbox (request pykeep-"));
    CHECK(contains(what, row.message));
    for (const std::string& part : row.says) CHECK(contains(what, part));
    CHECK(scene.server.seen().size() == 1);  // a POST whose outcome is unknown is never repeated
    CHECK(error->request_id == scene.server.seen()[0].header("x-request-id"));
  }
}

TEST_CASE("answers that are none of this API's") {
  for (const char* body : {"<html></html>", "{", "7", "[]", "{}", R"({"id":1e999})", "\xff\xfe"}) {
    CAPTURE(body);
    Scene scene({reply(201, body)});
    auto error = scene.failure_of(scene.client->create(CreateRequest()));
    REQUIRE(error);
    CHECK(error->failure == Failure::malformed);
    CHECK(error->outcome == Outcome::unknown);  // there may be a sandbox now
    CHECK(scene.server.seen().size() == 1);
  }
  SUBCASE("an answer that is nested without end") {
    Scene scene({reply(200, std::string(1 << 20, '['))});
    CHECK(scene.failure_of(scene.client->list())->failure == Failure::malformed);
  }
  SUBCASE("an answer without end") {
    Scene scene([](Peer& peer, const Seen&) {
      peer.send("HTTP/1.1 200 OK\r\n\r\n");
      const std::string block(1 << 20, ' ');
      while (peer.send(block)) continue;
      peer.ended = true;
    });
    CHECK(scene.failure_of(scene.client->list())->failure == Failure::too_large);
    CHECK(scene.failure_of(scene.client->exec("s1", "yes", 5s))->failure == Failure::too_large);
  }
  SUBCASE("a file that was not taken whole") {
    Scene scene({reply(200, R"({"bytes":2})")});
    CHECK(scene.failure_of(scene.client->put_file("s1", "/a", "abc"))->failure ==
          Failure::malformed);
  }
  SUBCASE("an error without end is cut") {
    Scene scene([](Peer& peer, const Seen&) {
      peer.send("HTTP/1.1 500 No\r\nContent-Length: 100000\r\n\r\n" + std::string(100'000, 'x'));
    });
    auto error = scene.failure_of(scene.client->snapshot("s1"));
    CHECK(error->body.size() == 64 << 10);
    CHECK(std::string(error->what()).size() < 1000);
  }
  SUBCASE("an error that breaks off keeps its status") {
    Scene scene([](Peer& peer, const Seen&) {
      peer.send("HTTP/1.1 409 No\r\nContent-Length: 100\r\n\r\nhalf");
      peer.ended = true;
    });
    auto error = scene.failure_of(scene.client->snapshot("s1"));
    CHECK(error->status == 409);
    CHECK(error->message == "half");
  }
}

TEST_CASE("what is repeated, and what is not") {
  struct Row {
    const char* name;
    AnyCall call;
    std::vector<std::string> script;
    std::size_t requests;
    int status;  // of the error; 0 = it succeeds
  };
  const AnyCall get = [](Client& c) { return ignoring(c.get("s1")); };
  const AnyCall create = [](Client& c) { return ignoring(c.create(CreateRequest())); };
  const AnyCall exec = [](Client& c) { return ignoring(c.exec("s1", "true", 1s)); };
  const AnyCall stream = [](Client& c) { return ignoring(c.exec_stream("s1", "true", 1s)); };
  const AnyCall put = [](Client& c) { return c.put_file("s1", "/a", "abc"); };
  const AnyCall stat = [](Client& c) { return ignoring(c.stat("s1", "/a")); };
  const AnyCall snapshot = [](Client& c) { return ignoring(c.snapshot("s1")); };
  const AnyCall proxy = [](Client& c) { return ignoring(c.proxy("s1", proxy_request())); };
  const AnyCall look = [](Client& c) {
    ProxyRequest request = proxy_request();
    request.method = "GET";
    request.body.clear();
    return ignoring(c.proxy("s1", request));
  };
  const std::string ok = reply(200, kSandbox), none = reply(404, R"({"error":"not found"})"),
                    ran = reply(200, R"({"exit_code":0})"),
                    no_file = reply(404, R"({"error":"file does not exist"})"),
                    slow_down = reply(429, R"({"error":"rate limit"})", "Retry-After: 1\r\n"),
                    full = reply(503, R"({"error":"no compute capacity available"})",
                                 "Retry-After: 5\r\n"),
                    no_node = reply(502, R"({"error":"no available compute node"})"),
                    no_memory = reply(507, R"({"error":"insufficient host memory"})"),
                    unreachable = reply(502, R"({"error":"agent unreachable"})"),
                    dial = reply(502, R"({"error":"upstream: dial tcp 1.2.3.4:9: connect: )"
                                      R"(connection refused"})"),
                    mid_read = reply(500, R"({"error":"read tcp 1.2.3.4:22: i/o timeout"})");
  const Row rows[] = {
      {"a new sandbox is not known everywhere yet", get, {none, ok}, 2, 0},
      {"nor is one that is not", get, {none, none, ok}, 2, 404},
      {"a POST to it is another matter", snapshot, {none, ok}, 1, 404},
      {"a file that is not there", stat, {no_file, ok}, 1, 0},
      {"too many requests", get, {slow_down, slow_down, ok}, 3, 0},
      {"too many requests of any kind", exec, {slow_down, ran}, 2, 0},
      {"far too many", get, std::vector<std::string>(9, slow_down), 6, 429},
      {"no room yet", create, {full, no_node, no_memory, ok}, 4, 0},
      {"no room", create, std::vector<std::string>(9, no_memory), 5, 507},
      {"no room, but not for a create", snapshot, {full, ok}, 1, 503},
      {"who knows whether it was created", create, {unreachable, ok}, 1, 502},
      {"the guest comes up", exec, {kWarmUp, kWarmUp, ran}, 3, 0},
      {"the guest comes up, for a stream", stream, {kWarmUp, ok}, 2, 0},
      {"the guest comes up, for a file", put, {kWarmUp, reply(200, R"({"bytes":3})")}, 2, 0},
      {"the guest is none of a snapshot's business", snapshot, {kWarmUp, ok}, 1, 500},
      {"the command may run", exec, {mid_read, ran}, 1, 500},
      {"who knows whether it ran", exec, {unreachable, ran}, 1, 502},
      {"nobody listens behind the proxy", proxy, {dial, ok}, 1, 502},
      {"the guest's server has its own 404", look, {none, ok}, 1, 404},
      {"too many requests to the proxy", proxy, {slow_down, ok}, 2, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Scene scene(row.script);
    auto error = scene.failure_of(row.call(*scene.client));
    CHECK((error ? error->status : 0) == row.status);
    CHECK(scene.server.seen().size() == row.requests);
  }

  SUBCASE("a guest that never comes up") {
    Scene scene(std::vector<std::string>(100, kWarmUp));
    auto began = Clock::now();
    auto error = scene.failure_of(exec(*scene.client));
    REQUIRE(error);
    CHECK(error->outcome == Outcome::refused);
    CHECK(scene.server.seen().size() >= 3);
    CHECK(scene.server.seen().size() <= 6);  // 60 ms, from 10 ms apart to 20
    CHECK(Clock::now() - began < 1s);
  }
  SUBCASE("no POST is sent again after its connection broke") {
    for (const AnyCall& call : {create, exec, stream, put, snapshot, proxy}) {
      Scene scene([](Peer& peer, const Seen& seen) {
        if (seen.method == "GET") peer.send(reply(200, "[]"));
        peer.ended = seen.method != "GET";
      });
      scene.run(scene.client->list());  // its connection is kept for the next
      auto error = scene.failure_of(call(*scene.client));
      REQUIRE(error);
      CHECK(error->failure == Failure::cut);
      CHECK(error->outcome == Outcome::unknown);
      CHECK(contains(error->what(), "It may have been done all the same"));
      CHECK(scene.server.seen().size() == 2);
    }
  }
}

TEST_CASE("the key is in no log, error or result") {
  Log log;
  std::string errors;
  // A server, or something before it, that shows what it was sent.
  auto echo = [](int status, const std::string& before, const std::string& after) {
    return [=](Peer& peer, const Seen& seen) {
      peer.send(reply(status, before + seen.header("authorization") + after));
    };
  };
  for (int status : {301, 400, 401, 404, 429, 500, 502, 503}) {
    Scene scene(echo(status, R"({"error":"no ")", R"("})"));
    Scene plain(echo(status, "you sent ", " which is wrong"));
    for (Scene* each : {&scene, &plain}) {
      auto error = each->failure_of(each->client->exec("s1", "true", 1s));
      REQUIRE(error);
      errors += std::string(error->what()) + error->message + error->body + "\n";
      CHECK(contains(error->body, "Bearer ***"));
    }
  }
  Scene scene(echo(200, R"({"exit_code":0,"stdout":")", R"("})"));
  CHECK(scene.run(scene.client->exec("s1", "true", 1s)).standard_output == "Bearer ***");

  Scene nonsense(echo(200, "<", ">"));
  errors += nonsense.failure_of(nonsense.client->get("s1"))->what();
  Scene silent([](Peer& peer, const Seen&) { peer.ended = true; });
  errors += silent.failure_of(silent.client->snapshot("s1"))->what();

  Settings settings = settings_for(scene.server);
  settings.base = "http://keep.example/v1";
  Client in_plain_text(scene.loop.io.get_executor(), settings);

  CHECK(contains(log.text(), "in plain text"));
  CHECK(contains(log.text(), "pandastack: POST /sandboxes/s1/exec: 200 in "));
  CHECK(contains(log.text(), "request " + scene.server.seen()[0].header("x-request-id")));
  CHECK_FALSE(contains(log.text(), kKey));
  CHECK_FALSE(contains(log.text(), "Bearer pds"));
  CHECK_FALSE(contains(errors, kKey));
}

TEST_CASE("a command with its output as it comes") {
  auto events = [](const std::string& text) {
    return reply(200, text, "cache-control: no-cache\r\n", "text/event-stream");
  };
  auto drain = [](ExecStream& stream, std::string& into) -> awaitable<void> {
    while (auto output = co_await stream.next())
      into += (output->is_stderr ? "2:" : "1:") + output->text;
  };
  struct Row {
    const char* name;
    std::string text;
    const char* output;
    int exit_code;
    std::optional<Failure> failure;
    Outcome outcome = Outcome::unknown;
  };
  const std::string a = "event: stdout\ndata: {\"chunk\":\"a\\n\"}\n\n";
  const std::string b = "event: stderr\ndata: {\"chunk\":\"b\\n\"}\n\n";
  const Row rows[] = {
      {"output and exit", a + b + "event: exit\ndata: {\"exit_code\":2}\n\n", "1:a\n2:b\n", 2, {}},
      {"what comes after is not read", "event: exit\ndata: {\"exit_code\":0}\n\n" + a, "", 0, {}},
      {"events of the future",
       a + "event: usage\ndata: {}\n\nevent: exit\ndata: {\"exit_code\":137}\n\n",
       "1:a\n",
       137,
       {}},
      {"it is cut", a + b, "1:a\n2:b\n", 0, Failure::cut},
      {"it is cut in an event", a + "event: exit\ndata: {\"exit_code\":0}\n", "1:a\n", 0,
       Failure::cut},
      {"an error", a + "event: error\ndata: {\"error\":\"EOF\"}\n\n", "1:a\n", 0,
       Failure::answered},
      {"a guest that is not up",
       "event: error\ndata: {\"error\":\"dial tcp 1.2.3.4:22: connect: connection refused\"}\n\n",
       "", 0, Failure::answered, Outcome::refused},
      {"an exit without a code", "event: exit\ndata: {}\n\n", "", 0, Failure::malformed},
      {"output that is not JSON", "event: stdout\ndata: a\n\n", "", 0, Failure::malformed},
      {"output that is no text", "event: stdout\ndata: {\"chunk\":7}\n\n", "", 0,
       Failure::malformed},
      {"an event without end", "data: " + std::string(1 << 20, 'x'), "", 0, Failure::malformed},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Scene scene({events(row.text)});
    auto stream = scene.run(scene.client->exec_stream("s1", "true", 5s));
    std::string output;
    auto error = scene.failure_of(drain(*stream, output));
    CHECK(output == row.output);
    REQUIRE(error.has_value() == row.failure.has_value());
    if (error) {
      CHECK(error->failure == *row.failure);
      CHECK(error->outcome == row.outcome);
      CHECK(std::string(error->what()).starts_with("PandaStack could not run a command"));
    } else {
      CHECK(stream->exit_code() == row.exit_code);
    }
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

TEST_CASE("a client can be destroyed while calls wait, also between two attempts") {
  auto call = [](awaitable<SandboxInfo> get, int& closed) -> awaitable<void> {
    try {
      co_await std::move(get);
    } catch (const Error& error) {
      closed += error.failure == Failure::closed;
    }
  };
  auto destroy_later = [](std::unique_ptr<Client>& client) -> awaitable<void> {
    co_await async::sleep_for(30ms);
    client.reset();
  };
  const ScriptedServer::Handler silent = [](Peer& peer, const Seen&) {
    peer.is_left();
    peer.ended = true;
  };
  auto busy = replies(std::vector<std::string>(3, reply(429, "{}", "Retry-After: 30\r\n")));
  for (const auto& handler : {silent, busy}) {
    ScriptedServer server(handler);
    Loop loop;
    Patience patience = impatient();
    patience.unit = 3ms;  // so 90 ms after a 429
    auto client = std::make_unique<Client>(loop.io.get_executor(), settings_for(server),
                                           HttpOptions(), patience);
    int closed = 0;
    async::TaskGroup group(loop.io.get_executor());
    for (int i = 0; i < 3; ++i) group.spawn(call(client->get("s1"), closed));
    group.spawn(destroy_later(client));
    auto began = Clock::now();
    loop.run(group.join());
    CHECK(closed == 3);
    CHECK(Clock::now() - began < 2s);
  }
}

TEST_CASE("a wait between two attempts can be cancelled") {
  Scene scene({reply(429, "{}", "Retry-After: 30\r\n")});
  Patience patience = impatient();
  patience.unit = 1s;
  Client client(scene.loop.io.get_executor(), settings_for(scene.server), {}, patience);
  auto hurried = [](Client& slow) -> awaitable<bool> {
    auto getting = slow.get("s1");
    auto found = co_await async::within(100ms, std::move(getting));
    co_return found.has_value();
  };
  CHECK_FALSE(scene.run(hurried(client)));
}

}  // namespace sandbox::pandastack
