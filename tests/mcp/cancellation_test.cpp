// notifications/cancelled and its races, and the end of the transport.

#include <doctest/doctest.h>

#include "tests/mcp/conversation.hpp"

namespace {

std::string call(std::string_view id, const char* tool, bool in_modern_era = false) {
  std::string params = R"("name":")" + std::string(tool) + R"(")";
  return R"({"jsonrpc":"2.0","id":)" + std::string(id) + R"(,"method":"tools/call","params":)" +
         (in_modern_era ? modern(params) : "{" + params + "}") + "}";
}

std::string cancel(std::string_view id) {
  return R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":)" +
         std::string(id) + R"(,"reason":"test"}})";
}

}  // namespace

TEST_CASE("a cancelled call stops and is not answered") {
  for (bool in_modern_era : {false, true}) {
    CAPTURE(in_modern_era);
    Conversation client;
    client.start(call("1", "wait", in_modern_era));
    CHECK(client.tools.started == 1);
    client.start(cancel("1"));
    REQUIRE(client.run());
    CHECK(client.tools.cancelled == 1);
    CHECK(client.sent().empty());
    CHECK(client.peer.in_flight.empty());
    // The id is free again, and the connection as good as before.
    CHECK(client.ask(R"({"jsonrpc":"2.0","id":1,"method":"tools/list"})").at("id") == 1);
  }
}

TEST_CASE("nothing more is said for a cancelled call, whatever its tool does") {
  Conversation client;
  client.start(R"({"jsonrpc":"2.0","id":1,"method":"tools/call",)"
               R"("params":{"name":"defiant","_meta":{"progressToken":1}}})");
  client.start(cancel("1"));
  REQUIRE(client.run());
  CHECK(client.sent().empty());
}

TEST_CASE("a cancellation reaches the call with that id and type of id only") {
  Conversation client;
  client.start(call("1", "wait"));
  client.start(call(R"("1")", "wait"));
  for (const char* other : {"2", R"("2")", "1.0", "null", "[1]"}) client.start(cancel(other));
  CHECK(client.serving() == 2);
  client.start(cancel(R"("1")"));
  CHECK(client.serving() == 1);
  CHECK(client.peer.in_flight.contains("1"));
  client.start(cancel("1"));
  CHECK(client.serving() == 0);
  CHECK(client.sent().empty());
}

TEST_CASE("cancelling twice, or what has ended, does nothing") {
  Conversation client;
  client.ask(call("1", "refuse"));
  client.start(cancel("1"));
  client.start(call("1", "wait"));
  client.start(cancel("1"));
  client.start(cancel("1"));
  REQUIRE(client.run());
  CHECK(client.tools.cancelled == 1);
  CHECK(client.sent().empty());
}

// The messages are all queued before any is served, as when they come in one read.
TEST_CASE("a cancellation that comes at once still counts") {
  boost::asio::io_context io;
  FakeTools tools;
  mcp::Server server({"pykeep", {}, "0.1"}, "", tools.all(), nullptr);
  mcp::Peer peer;
  FakeOutbox out;
  async::TaskGroup requests(io.get_executor());
  for (const std::string& text : {call("1", "wait"), cancel("1"), call("2", "echo"), cancel("2"),
                                  call("3", "refuse"), cancel("3"), call("4", "wait"), cancel("4")})
    requests.spawn(server.handle(json::parse(text), peer, out));
  io.run();
  CHECK(requests.size() == 0);
  CHECK(tools.started == tools.cancelled);
  CHECK(peer.in_flight.empty());
  CHECK(out.messages.empty());
}

TEST_CASE("initialize cannot be cancelled") {
  boost::asio::io_context io;
  FakeTools tools;
  mcp::Server server({"pykeep", {}, "0.1"}, "", tools.all(), nullptr);
  mcp::Peer peer;
  FakeOutbox out;
  async::TaskGroup requests(io.get_executor());
  for (const std::string& text : {std::string(R"({"jsonrpc":"2.0","id":1,"method":"initialize",)"
                                              R"("params":{"protocolVersion":"2025-06-18"}})"),
                                  cancel("1")})
    requests.spawn(server.handle(json::parse(text), peer, out));
  io.run();
  REQUIRE(out.messages.size() == 1);
  CHECK(out.messages[0].at("result").at("protocolVersion") == "2025-06-18");
}

TEST_CASE("an id in flight cannot be used again") {
  for (bool in_modern_era : {false, true}) {
    CAPTURE(in_modern_era);
    Conversation client;
    client.start(call("1", "wait", in_modern_era));
    client.start(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
    REQUIRE(client.out.messages.size() == 1);
    CHECK(client.out.messages[0].at("id") == 1);
    CHECK(client.out.messages[0].at("error").at("code") == -32600);
    CHECK(client.serving() == 1);
    CHECK(client.tools.cancelled == 0);
  }
}

TEST_CASE("a client cannot have any number of calls in flight") {
  Conversation client;
  for (int id = 0; id < 1100; ++id) client.start(call(std::to_string(id), "wait"));
  CHECK(client.peer.in_flight.size() == 1024);
  CHECK(client.sent().size() == 76);
  client.start(cancel("5"));
  client.start(call("2000", "wait"));
  CHECK(client.sent().empty());
}

TEST_CASE("ping is answered while a call runs") {
  Conversation client;
  client.start(call("1", "wait"));
  client.start(R"({"jsonrpc":"2.0","id":2,"method":"ping"})");
  CHECK(client.sent() == std::vector<std::string>{R"({"jsonrpc":"2.0","id":2,"result":{}})"});
}

TEST_CASE("the end of the transport unwinds every call, without an answer") {
  Conversation client;
  for (const char* id : {"1", "2", "3"}) client.start(call(id, "wait"));
  client.shut_down();
  REQUIRE(client.run());
  CHECK(client.tools.cancelled == 3);
  CHECK(client.peer.in_flight.empty());
  CHECK(client.sent().empty());
}

TEST_CASE(
    "the end of the transport also ends an answer, and a question, that the client does not read") {
  Conversation client;
  client.initialize("2025-11-25", R"({"elicitation":{}})");
  client.out.slow = true;
  client.start(call("1", "refuse"));
  client.start(R"({"jsonrpc":"2.0","id":2,"method":"tools/call",)"
               R"("params":{"name":"ask","arguments":{"text":"Who?"}}})");
  CHECK(client.serving() == 2);
  client.shut_down();
  REQUIRE(client.run());
  CHECK(client.peer.asked.empty());
  CHECK(client.sent().empty());
}
