#include "sandbox/pandastack/caller.hpp"

#include <doctest/doctest.h>

#include "async/task_group.hpp"
#include "tests/sandbox/pandastack/scene.hpp"

namespace sandbox::pandastack {

using Clock = std::chrono::steady_clock;

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
    Settings settings = settings_for(scene.server);
    settings.warm_up = 2s;
    Patience patience = impatient();
    patience.warm_up_first = 300ms;
    patience.warm_up_most = 600ms;
    Client client(scene.loop.io.get_executor(), settings, {}, patience);
    auto began = Clock::now();
    auto error = scene.failure_of(exec(client));
    REQUIRE(error);
    CHECK(error->outcome == Outcome::refused);
    CHECK(scene.server.seen().size() >= 3);
    CHECK(scene.server.seen().size() <= 6);  // 2 s, from 0.3 s apart to 0.6
    CHECK(Clock::now() - began < 20s);
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
    CHECK(Clock::now() - began < 8s);
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
