// Streamable HTTP with sessions, 2025-03-26 to 2025-11-25.

#include "transport/http/legacy_mcp.hpp"

#include <doctest/doctest.h>

#include <cstdlib>

#include "tests/support/scratch.hpp"
#include "tests/transport/http/mcp_conversation.hpp"

using Limit = McpConversation::Limit;

namespace {

std::string slow(int id, int ms, int steps = 1, const std::string& meta = "{}") {
  return tool_call(id, "slow",
                   "{\"ms\":" + std::to_string(ms) + ",\"steps\":" + std::to_string(steps) + "}",
                   meta);
}

const std::string kProgress = R"({"progressToken":"t"})";
const std::string kInitialized = R"({"jsonrpc":"2.0","method":"notifications/initialized"})";

int count(const std::string& text, std::string_view what) {
  int found = 0;
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
  return found;
}

}  // namespace

TEST_CASE("every refusal has its status") {
  McpConversation client([] {
    auto limits = McpConversation::quick();
    limits.body_bytes = 2000;
    limits.capabilities_bytes = 500;
    return limits;
  }());
  const std::string id = client.initialize();
  const std::string old = client.initialize("2025-03-26");
  REQUIRE(id.size() == 26);  // 130 bits, five a character
  struct Row {
    const char* name;
    const char* method;
    McpConversation::Headers headers;
    std::string body;
    int status;
    const char* says;
  };
  const std::string ping = request(1, "ping");
  const Row rows[] = {
      {"no session", "POST", {}, ping, 400, "Mcp-Session-Id is required"},
      {"unknown session", "POST", {{"Mcp-Session-Id", "gone"}}, ping, 404, "-32001"},
      {"its own", "POST", {{"Mcp-Session-Id", id}}, ping, 200, R"("result":{})"},
      {"names of headers have no case", "POST", {{"mcp-session-id", id}}, ping, 200, "result"},
      {"another legacy version",
       "POST",
       {{"Mcp-Session-Id", id}, {"MCP-Protocol-Version", "2025-06-18"}},
       ping,
       200,
       "result"},
      {"an unknown version",
       "POST",
       {{"Mcp-Session-Id", id}, {"MCP-Protocol-Version", "1.0"}},
       ping,
       400,
       "-32000"},
      {"second initialize",
       "POST",
       {{"Mcp-Session-Id", id}},
       McpConversation::initialize_message(),
       400,
       "-32600"},
      {"initialize with a stale id",
       "POST",
       {{"Mcp-Session-Id", "gone"}},
       McpConversation::initialize_message(),
       200,
       "protocolVersion"},
      {"capabilities without measure",
       "POST",
       {},
       McpConversation::initialize_message("2025-11-25",
                                           "{\"x\":\"" + std::string(500, 'x') + "\"}"),
       400,
       "-32602"},
      {"initialize without params",
       "POST",
       {},
       R"({"jsonrpc":"2.0","id":1,"method":"initialize"})",
       200,
       "-32602"},
      {"a notification", "POST", {{"Mcp-Session-Id", id}}, kInitialized, 202, ""},
      {"a response",
       "POST",
       {{"Mcp-Session-Id", id}},
       R"({"jsonrpc":"2.0","id":9,"result":{}})",
       202,
       ""},
      {"a batch of notifications",
       "POST",
       {{"Mcp-Session-Id", old}},
       "[" + kInitialized + "]",
       202,
       ""},
      {"a batch",
       "POST",
       {{"Mcp-Session-Id", old}},
       "[" + ping + "," + kInitialized + "]",
       200,
       R"([{"jsonrpc":"2.0","id":1,"result":{}}])"},
      {"a batch in a later revision",
       "POST",
       {{"Mcp-Session-Id", id}},
       "[" + ping + "]",
       400,
       "-32600"},
      {"an unknown method",
       "POST",
       {{"Mcp-Session-Id", id}},
       request(1, "nonsense"),
       200,
       "-32601"},
      {"not JSON", "POST", {{"Mcp-Session-Id", id}}, "{", 400, "-32700"},
      {"not called JSON",
       "POST",
       {{"Mcp-Session-Id", id}, {"Content-Type", "text/plain"}},
       ping,
       415,
       "application/json"},
      {"JSON with a charset",
       "POST",
       {{"Mcp-Session-Id", id}, {"Content-Type", "application/json; charset=utf-8"}},
       ping,
       200,
       "result"},
      {"too long", "POST", {{"Mcp-Session-Id", id}}, std::string(2001, ' '), 413, "2000 bytes"},
      {"said to be too long",
       "POST",
       {{"Mcp-Session-Id", id}, {"Content-Length", "99999999"}},
       ping,
       413,
       "2000 bytes"},
      {"accepts neither",
       "POST",
       {{"Mcp-Session-Id", id}, {"Accept", "text/html"}},
       ping,
       406,
       "accept both"},
      {"accepts anything",
       "POST",
       {{"Mcp-Session-Id", id}, {"Accept", "*/*"}},
       ping,
       200,
       "result"},
      {"GET without a session", "GET", {}, "", 400, "-32000"},
      {"GET of an unknown one", "GET", {{"Mcp-Session-Id", "gone"}}, "", 404, "-32001"},
      {"GET of JSON",
       "GET",
       {{"Mcp-Session-Id", id}, {"Accept", "application/json"}},
       "",
       406,
       "text/event-stream"},
      {"GET after nonsense",
       "GET",
       {{"Mcp-Session-Id", id}, {"Last-Event-ID", "x"}},
       "",
       400,
       "Last-Event-ID"},
      {"GET after an event that is gone",
       "GET",
       {{"Mcp-Session-Id", id}, {"Last-Event-ID", "post-x-1-1"}},
       "",
       400,
       "not kept any more"},
      {"GET in the modern era", "GET", {{"MCP-Protocol-Version", "2026-07-28"}}, "", 405, "POST"},
      {"HEAD", "HEAD", {{"Mcp-Session-Id", id}}, "", 405, ""},
      {"PUT", "PUT", {{"Mcp-Session-Id", id}}, "", 405, ""},
      {"DELETE without a session", "DELETE", {}, "", 400, "-32000"},
      {"DELETE of an unknown one", "DELETE", {{"Mcp-Session-Id", "gone"}}, "", 404, "-32001"},
      {"DELETE", "DELETE", {{"Mcp-Session-Id", id}}, "", 200, ""},
      {"DELETE again", "DELETE", {{"Mcp-Session-Id", id}}, "", 404, "-32001"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    auto answer = client.send(row.method, "/mcp", row.headers, row.body);
    CHECK(answer->over);
    CHECK(answer->status() == row.status);
    CHECK_MESSAGE(answer->says(row.says), answer->text);
  }
}

TEST_CASE("a session is its principal's: another's id is like an unknown one") {
  McpConversation client;
  const std::string id = client.initialize("2025-11-25", "anna");
  auto theirs = client.post({{"Mcp-Session-Id", id}}, request(1, "ping"), "boris");
  auto unknown = client.post({{"Mcp-Session-Id", "none"}}, request(1, "ping"), "boris");
  CHECK(theirs->status() == 404);
  CHECK(theirs->text == unknown->text);
  CHECK(client.send("DELETE", "/mcp", {{"Mcp-Session-Id", id}}, "", "boris")->status() == 404);
  CHECK(client.post({{"Mcp-Session-Id", id}}, request(1, "ping"))->status() == 200);
}

TEST_CASE("JSON when the answer comes soon, an event stream otherwise") {
  auto limits = McpConversation::quick();
  limits.json_wait = Limit(600);
  McpConversation client(limits);
  const std::string id = client.initialize();
  struct Row {
    const char* name;
    const char* accept;
    std::string message;
    bool streams;
  };
  for (const Row& row : {
           Row{"soon", "*/*", slow(1, 5), false},
           Row{"later", "*/*", slow(2, 1500), true},
           Row{"progress", "*/*", slow(3, 20, 2, kProgress), true},
           Row{"later, but only JSON is accepted", "application/json", slow(4, 1500), false},
           Row{"progress, but only JSON is accepted", "application/json", slow(5, 20, 2, kProgress),
               false},
           Row{"only events are accepted", "text/event-stream", slow(6, 5), true},
       }) {
    CAPTURE(row.name);
    auto answer = client.post({{"Mcp-Session-Id", id}, {"Accept", row.accept}}, row.message);
    CHECK(answer->streams == row.streams);
    CHECK(client.until_over(answer));
    CHECK(answer->header("Content-Type") ==
          (row.streams ? "text/event-stream" : "application/json"));
    CHECK(answer->says("waited"));
    if (!row.streams) continue;
    CHECK(answer->header("X-Accel-Buffering") == "no");
    CHECK(answer->header("Cache-Control") == "no-cache, no-transform");
  }
}

TEST_CASE("an event stream: priming and ids, comments while nothing happens, then the answer") {
  McpConversation client;
  struct Row {
    const char* revision;
    bool primes;
  };
  for (const Row& row : {Row{"2025-11-25", true}, Row{"2025-06-18", false}}) {
    CAPTURE(row.revision);
    const std::string id = client.initialize(row.revision);
    auto answer = client.post({{"Mcp-Session-Id", id}}, slow(1, 300, 1, kProgress));
    CHECK(client.until_over(answer));
    CHECK(answer->text.starts_with("retry: ") == row.primes);
    CHECK(answer->says("\ndata:\n\n") == row.primes);
    CHECK(answer->says(": keep-alive\n\n"));
    CHECK(count(answer->text, "event: message\ndata: {") == 2);
    CHECK(answer->text.find("notifications/progress") < answer->text.find("waited"));
    CHECK(answer->text.ends_with("}\n\n"));
  }
}

TEST_CASE("a batch on an event stream is answered by events of their own") {
  McpConversation client;
  const std::string id = client.initialize("2025-03-26");
  auto answer = client.post({{"Mcp-Session-Id", id}}, "[" + slow(1, 120) + "," + slow(2, 5) + "]");
  CHECK(client.until_over(answer));
  CHECK(answer->streams);
  CHECK(count(answer->text, "data: {\"jsonrpc\"") == 2);
}

TEST_CASE("disconnecting is not cancelling: the rest is there for Last-Event-ID") {
  McpConversation client;
  const std::string id = client.initialize();
  auto answer = client.post({{"Mcp-Session-Id", id}}, slow(1, 300, 3, kProgress));
  CHECK(client.until_says(answer, "step 1"));
  answer->leave();
  const std::string last = answer->last_event_id();
  client.run_for(Limit(50));
  CHECK(answer->handled);

  // While the call still runs, and once more after it has ended.
  for (int times : {1, 2}) {
    CAPTURE(times);
    auto rest = client.send("GET", "/mcp", {{"Mcp-Session-Id", id}, {"Last-Event-ID", last}});
    CHECK(client.until_over(rest));
    CHECK_FALSE(rest->says("step 1"));
    CHECK(rest->says("step 2"));
    CHECK(rest->says("waited 300 ms"));
  }
  auto beginning = last.substr(0, last.rfind('-')) + "-0";
  auto all = client.send("GET", "/mcp", {{"Mcp-Session-Id", id}, {"Last-Event-ID", beginning}});
  CHECK(client.until_over(all));
  CHECK(all->says("step 1"));

  // Only for its own session.
  const std::string other = client.initialize();
  auto stolen = client.send("GET", "/mcp", {{"Mcp-Session-Id", other}, {"Last-Event-ID", last}});
  CHECK(stolen->status() == 400);
}

TEST_CASE("a stream that is resumed leaves its first response, which may only seem to be alive") {
  McpConversation client;
  const std::string id = client.initialize();
  auto first = client.post({{"Mcp-Session-Id", id}}, slow(1, 300, 3, kProgress));
  CHECK(client.until_says(first, "step 1"));
  auto second = client.send("GET", "/mcp",
                            {{"Mcp-Session-Id", id}, {"Last-Event-ID", first->last_event_id()}});
  CHECK(client.until_over(first));
  CHECK(client.until_over(second));
  CHECK_FALSE(first->says("waited"));
  CHECK(second->says("waited"));
}

TEST_CASE("one GET stream a session; it stays open, and another may follow it") {
  McpConversation client;
  const std::string id = client.initialize();
  auto first = client.send("GET", "/mcp", {{"Mcp-Session-Id", id}});
  CHECK(first->streams);
  CHECK(client.send("GET", "/mcp", {{"Mcp-Session-Id", id}})->status() == 409);
  CHECK(client.until_says(first, ": keep-alive"));
  CHECK_FALSE(first->over);
  first->leave();
  client.run_until([&] { return first->handled; });
  auto second = client.send("GET", "/mcp", {{"Mcp-Session-Id", id}});
  CHECK(second->streams);
  auto third = client.send("GET", "/mcp",
                           {{"Mcp-Session-Id", id}, {"Last-Event-ID", first->last_event_id()}});
  CHECK(third->streams);
  CHECK(client.until_over(second));
  // After a restart its ids are of the past, which is no reason to refuse a new one.
  third->leave();
  client.run_until([&] { return third->handled; });
  CHECK(client.send("GET", "/mcp", {{"Mcp-Session-Id", id}, {"Last-Event-ID", "get-x-1-5"}})
            ->streams);
}

TEST_CASE("a question to the user goes on the stream of its call; the answer is a POST") {
  McpConversation client;
  const std::string id = client.initialize("2025-11-25", "anna", R"({"elicitation":{}})");
  auto call = client.post({{"Mcp-Session-Id", id}}, tool_call(1, "ask", R"({"question":"who?"})"));
  CHECK(client.until_says(call, "elicitation/create"));
  auto answer = client.post(
      {{"Mcp-Session-Id", id}},
      R"({"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"Ada"}}})");
  CHECK(answer->status() == 202);
  CHECK(client.until_over(call));
  CHECK(call->says("answered with Ada"));
  // Whoever takes only JSON cannot be asked, and is told so at once.
  auto json = client.post({{"Mcp-Session-Id", id}, {"Accept", "application/json"}},
                          tool_call(2, "ask", R"({"question":"who?"})"));
  CHECK(json->says("nobody can be asked"));
}

TEST_CASE("an id in flight is taken, in another POST as well; a cancelled call is not answered") {
  McpConversation client;
  const std::string id = client.initialize();
  auto first = client.post({{"Mcp-Session-Id", id}}, slow(1, 60'000));
  auto second = client.post({{"Mcp-Session-Id", id}}, slow(1, 5));
  CHECK(second->status() == 400);
  CHECK(second->says("-32600"));
  auto cancel = client.post(
      {{"Mcp-Session-Id", id}},
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  CHECK(cancel->status() == 202);
  CHECK(client.until_over(first));
  CHECK_FALSE(first->says("\"id\":1"));
}

TEST_CASE("the end of a session ends its calls and streams") {
  McpConversation client;
  const std::string id = client.initialize();
  auto call = client.post({{"Mcp-Session-Id", id}}, slow(1, 60'000));
  auto general = client.send("GET", "/mcp", {{"Mcp-Session-Id", id}});
  CHECK(client.send("DELETE", "/mcp", {{"Mcp-Session-Id", id}})->status() == 200);
  CHECK(client.until_over(call));
  CHECK(client.until_over(general));
  CHECK_FALSE(call->says("\"id\":1"));
}

TEST_CASE("requests in flight are limited, per session and per principal") {
  auto limits = McpConversation::quick();
  limits.requests_per_session = 2;
  limits.requests_per_principal = 3;
  McpConversation client(limits);
  const std::string id = client.initialize(), other = client.initialize();
  std::vector<McpConversation::Exchange> calls;
  for (int i : {1, 2}) calls.push_back(client.post({{"Mcp-Session-Id", id}}, slow(i, 60'000)));
  auto third = client.post({{"Mcp-Session-Id", id}}, slow(3, 5));
  CHECK(third->status() == 429);
  CHECK(third->header("Retry-After") == "1");
  CHECK(third->says("\"id\":3"));
  calls.push_back(client.post({{"Mcp-Session-Id", other}}, slow(3, 60'000)));
  CHECK(client.post({{"Mcp-Session-Id", other}}, slow(4, 5))->status() == 429);
  auto boris = client.initialize("2025-11-25", "boris");
  CHECK(client.post({{"Mcp-Session-Id", boris}}, slow(1, 5), "boris")->status() == 200);
  // Calls that nobody waits for count until they have ended.
  for (auto& call : calls) call->leave();
  client.run_for(Limit(20));
  CHECK(client.post({{"Mcp-Session-Id", id}}, slow(5, 5))->status() == 429);
  client.send("DELETE", "/mcp", {{"Mcp-Session-Id", other}});
  client.run_for(Limit(20));
  CHECK(client.post({{"Mcp-Session-Id", client.initialize()}}, slow(5, 5))->status() == 200);
}

TEST_CASE("the session that is idle for longest makes room; a busy one never goes") {
  auto limits = McpConversation::quick();
  limits.sessions_per_principal = 2;
  McpConversation client(limits);
  const std::string busy = client.initialize();
  auto call = client.post({{"Mcp-Session-Id", busy}}, slow(1, 60'000));
  const std::string idle = client.initialize();
  const std::string boris = client.initialize("2025-11-25", "boris");
  const std::string third = client.initialize();
  CHECK(client.post({{"Mcp-Session-Id", idle}}, request(1, "ping"))->status() == 404);
  CHECK(client.post({{"Mcp-Session-Id", busy}}, request(2, "ping"))->status() == 200);
  CHECK(client.post({{"Mcp-Session-Id", boris}}, request(1, "ping"), "boris")->status() == 200);
  auto second_call = client.post({{"Mcp-Session-Id", third}}, slow(1, 60'000));
  CHECK(client.post({}, McpConversation::initialize_message())->status() == 503);
}

TEST_CASE("a client that reads nothing cannot make a stream grow") {
  auto limits = McpConversation::quick();
  limits.unread_bytes = 10'000;
  McpConversation client(limits);
  const std::string id = client.initialize();
  auto stalled =
      client.start("POST", "/mcp", {{"Mcp-Session-Id", id}},
                   slow(1, 2000, 2000, R"({"progressToken":")" + std::string(500, 't') + R"("})"));
  stalled->reads_nothing = true;
  client.run_for(Limit(700));
  stalled->reads_nothing = false;
  client.run_for(Limit(100));
  // Hundreds of steps were taken; what was queued is a few of them.
  CHECK(count(stalled->text, "notifications/progress") < 60);
}

TEST_CASE("sessions outlive the server, with what they settled") {
  testing::Scratch scratch;
  std::filesystem::path directory = scratch.path / "http";
  std::string id, ended;
  {
    McpConversation client(McpConversation::quick(), directory);
    id = client.initialize("2025-03-26", "anna", R"({"elicitation":{}})");
    ended = client.initialize();
    client.send("DELETE", "/mcp", {{"Mcp-Session-Id", ended}});
  }
  {
    McpConversation client(McpConversation::quick(), directory);
    auto batch = client.post({{"Mcp-Session-Id", id}}, "[" + request(1, "ping") + "]");
    CHECK(batch->status() == 200);
    CHECK(client.post({{"Mcp-Session-Id", id}}, request(1, "ping"), "boris")->status() == 404);
    CHECK(client.post({{"Mcp-Session-Id", ended}}, request(1, "ping"))->status() == 404);
    CHECK(client.send("GET", "/mcp", {{"Mcp-Session-Id", id}})->streams);
  }
}

TEST_CASE("when the server is to stop, what would last for ever ends") {
  McpConversation client;
  const std::string id = client.initialize();
  auto general = client.send("GET", "/mcp", {{"Mcp-Session-Id", id}});
  auto sse = client.send("GET", "/sse", {});
  auto call = client.post({{"Mcp-Session-Id", id}}, slow(1, 200));
  client.mcp().end_streams();
  CHECK(client.until_over(general));
  CHECK(client.until_over(sse));
  CHECK(client.until_over(call));
  CHECK(call->says("waited"));
}
