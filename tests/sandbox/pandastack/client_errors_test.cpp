#include <doctest/doctest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <sstream>

#include "tests/sandbox/pandastack/scene.hpp"

namespace sandbox::pandastack {
namespace {

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

}  // namespace

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

}  // namespace sandbox::pandastack
