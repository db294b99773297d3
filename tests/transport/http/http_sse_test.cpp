// HTTP+SSE (2024-11-05).

#include "transport/http/http_sse.hpp"

#include <doctest/doctest.h>

#include "tests/transport/http/mcp_conversation.hpp"

namespace {

// The URI that the stream's first event names.
std::string endpoint(const McpConversation::Exchange& stream) {
  const std::string before = "event: endpoint\ndata: ";
  REQUIRE(stream->text.starts_with(before));
  return stream->text.substr(before.size(), stream->text.find('\n', before.size()) - before.size());
}

McpConversation::Exchange post(McpConversation& client, const std::string& uri,
                               const std::string& body, const std::string& principal = "anna") {
  return client.send("POST", uri, {}, body, principal);
}

}  // namespace

TEST_CASE("messages go up by POST, and come down on the stream") {
  McpConversation client;
  auto stream = client.send("GET", "/sse", {{"Accept", "text/event-stream"}});
  CHECK(stream->header("Content-Type") == "text/event-stream");
  const std::string uri = endpoint(stream);
  CHECK(uri.starts_with("/messages?sessionId="));
  auto sent = post(client, uri, McpConversation::initialize_message("2025-11-25"));
  CHECK(sent->status() == 202);
  CHECK(sent->text == "Accepted");
  CHECK(client.until_says(stream, R"("protocolVersion":"2025-11-25")"));
  CHECK(stream->says("event: message\ndata: {"));
  post(client, uri, tool_call(1, "echo", R"({"text":"hello"})"));
  CHECK(client.until_says(stream, "hello"));
  CHECK(client.until_says(stream, ": keep-alive\n\n"));
  CHECK_FALSE(stream->says("id: "));
  CHECK_FALSE(stream->over);
}

TEST_CASE("what is refused, and how") {
  McpConversation client;
  auto stream = client.send("GET", "/sse", {});
  const std::string uri = endpoint(stream);
  const std::string ping = request(1, "ping");
  CHECK(client.send("GET", "/sse", {{"Accept", "application/json"}})->status() == 406);
  CHECK(post(client, "/messages", ping)->status() == 400);
  CHECK(post(client, uri, "{")->status() == 400);
  CHECK(client.send("POST", uri, {{"Content-Type", "text/plain"}}, ping)->status() == 415);
  auto unknown = post(client, "/messages?sessionId=none", ping);
  CHECK(unknown->status() == 404);
  auto theirs = post(client, uri, ping, "boris");
  CHECK(theirs->status() == 404);
  CHECK(theirs->text == unknown->text);
  CHECK(client.send("POST", "/sse", {}, ping)->status() == 405);
  CHECK(client.send("HEAD", "/sse", {})->status() == 405);
}

TEST_CASE("when the stream closes, its calls end and its session is gone") {
  McpConversation client;
  auto stream = client.send("GET", "/sse", {});
  const std::string uri = endpoint(stream);
  post(client, uri, tool_call(1, "slow", R"({"ms":60000})"));
  stream->leave();
  CHECK(client.run_until([&] { return stream->handled; }));
  CHECK(post(client, uri, request(2, "ping"))->status() == 404);
  CHECK(client.mcp().sessions() == 0);
}

TEST_CASE("a client that reads nothing is sent no more than fits") {
  auto limits = McpConversation::quick();
  limits.unread_bytes = 10'000;
  limits.requests_per_session = 4;
  McpConversation client(limits);
  auto stream = client.send("GET", "/sse", {});
  stream->reads_nothing = true;
  int taken = 0, refused = 0;
  for (int i = 0; i < 50; ++i) {
    int status =
        post(client, endpoint(stream), tool_call(i, "flood", R"({"bytes":9000})"))->status();
    (status == 202 ? taken : refused)++;
  }
  CHECK(taken <= 8);
  CHECK(refused >= 42);
}
