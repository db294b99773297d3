// Streamable HTTP of 2026-07-28: no sessions.

#include "transport/http/modern_mcp.hpp"

#include <doctest/doctest.h>

#include "tests/transport/http/mcp_conversation.hpp"

using Limit = McpConversation::Limit;

namespace {

McpConversation::Headers headers(const std::string& method, const std::string& name = "") {
  McpConversation::Headers out{{"MCP-Protocol-Version", "2026-07-28"}, {"Mcp-Method", method}};
  if (!name.empty()) out.emplace_back("Mcp-Name", name);
  return out;
}

McpConversation::Headers with(McpConversation::Headers headers, const char* name,
                              const char* value) {
  headers.emplace_back(name, value);
  return headers;
}

std::string modern(int id, const std::string& method) {
  return request(id, method, R"({"_meta":)" + kModernMeta + "}");
}

std::string slow(int id, int ms, const std::string& meta = kModernMeta, int steps = 1) {
  return tool_call(id, "slow",
                   "{\"ms\":" + std::to_string(ms) + ",\"steps\":" + std::to_string(steps) + "}",
                   meta);
}

}  // namespace

TEST_CASE("errors have their status, results and what a tool says have 200") {
  McpConversation client;
  struct Row {
    const char* name;
    McpConversation::Headers headers;
    std::string body;
    int status;
    const char* says;
  };
  const Row rows[] = {
      {"discover", headers("server/discover"), modern(1, "server/discover"), 200,
       R"("supportedVersions":["2026-07-28"])"},
      {"a tool", headers("tools/call", "echo"),
       tool_call(1, "echo", R"({"text":"hello"})", kModernMeta), 200, "hello"},
      {"a tool, its name in base64", headers("tools/call", "=?base64?ZWNobw==?="),
       tool_call(1, "echo", R"({"text":"hello"})", kModernMeta), 200, "hello"},
      {"a tool that refuses", headers("tools/call", "fail"),
       tool_call(1, "fail", "{}", kModernMeta), 200, "isError"},
      {"a tool that breaks", headers("tools/call", "break"),
       tool_call(1, "break", "{}", kModernMeta), 200, "-32603"},
      {"an unknown tool", headers("tools/call", "none"), tool_call(1, "none", "{}", kModernMeta),
       200, "-32602"},
      {"an unknown method", headers("nonsense"), modern(1, "nonsense"), 404, "-32601"},
      {"a method of the other era", headers("ping"), modern(1, "ping"), 404, "-32601"},
      {"initialize", headers("initialize"), modern(1, "initialize"), 404, "-32601"},
      {"a question the client cannot show", headers("tools/call", "ask"),
       tool_call(1, "ask", R"({"question":"?"})", kModernMeta), 200, "nobody can be asked"},
      {"no headers", {}, modern(1, "tools/list"), 400, "-32020"},
      {"another method", headers("tools/call"), modern(1, "tools/list"), 400, "-32020"},
      {"another name", headers("tools/call", "fail"), tool_call(1, "echo", "{}", kModernMeta), 400,
       "-32020"},
      {"another version",
       {{"MCP-Protocol-Version", "2025-11-25"}},
       modern(1, "tools/list"),
       400,
       "-32020"},
      {"no envelope", headers("tools/list"), request(1, "tools/list"), 400, "-32602"},
      {"a notification", headers("notifications/x"),
       R"({"jsonrpc":"2.0","method":"notifications/x"})", 202, ""},
      {"headers of the other era do not matter",
       with(with(headers("tools/list"), "Mcp-Session-Id", "gone"), "Last-Event-ID", "x"),
       modern(1, "tools/list"), 200, "\"tools\""},
      {"listening without events",
       with(headers("subscriptions/listen"), "Accept", "application/json"),
       modern(1, "subscriptions/listen"), 406, "text/event-stream"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    auto answer = client.post(row.headers, row.body);
    CHECK(client.until_over(answer));
    CHECK(answer->status() == row.status);
    CHECK_MESSAGE(answer->says(row.says), answer->text);
    CHECK(answer->header("Mcp-Session-Id") == "");
  }
}

TEST_CASE("progress makes it an event stream, without ids: nothing can be resumed") {
  McpConversation client;
  auto answer = client.post(headers("tools/call", "slow"), slow(1, 30, kModernMetaWithProgress, 3));
  CHECK(client.until_over(answer));
  CHECK(answer->header("Content-Type") == "text/event-stream");
  CHECK(answer->header("X-Accel-Buffering") == "no");
  CHECK(answer->says("step 1"));
  CHECK(answer->says("\"id\":1"));
  CHECK_FALSE(answer->says("id: "));
  CHECK_FALSE(answer->says("retry: "));
}

TEST_CASE("who takes only JSON gets one body, however late") {
  McpConversation client;
  auto answer = client.post(with(headers("tools/call", "slow"), "Accept", "application/json"),
                            slow(1, 200, kModernMetaWithProgress, 4));
  CHECK(client.until_over(answer));
  CHECK(answer->header("Content-Type") == "application/json");
  CHECK_FALSE(answer->says("step 1"));
  CHECK(answer->says("waited"));
}

TEST_CASE("closing the response cancels the request, and nothing more is sent") {
  McpConversation client;
  auto answer = client.post(headers("tools/call", "slow"), slow(1, 60'000));
  CHECK(answer->streams);
  answer->leave();
  CHECK(client.run_until([&] { return answer->handled; }));
  CHECK_FALSE(answer->says("\"id\":1"));

  // Also before the response has begun.
  auto early = client.start("POST", "/mcp", headers("tools/call", "slow"), slow(1, 60'000));
  client.run_for(Limit(10));
  early->leave();
  CHECK(client.run_until([&] { return early->handled; }));
  CHECK_FALSE(early->over);
}

TEST_CASE("requests know nothing of each other: one id may be in flight twice") {
  McpConversation client;
  auto first = client.start("POST", "/mcp", headers("tools/call", "slow"), slow(1, 40));
  auto second = client.start("POST", "/mcp", headers("tools/call", "slow"), slow(1, 40));
  CHECK(client.until_over(first));
  CHECK(client.until_over(second));
  CHECK(first->says("waited"));
  CHECK(second->says("waited"));
}
