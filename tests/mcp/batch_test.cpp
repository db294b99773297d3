// Batches: 2025-03-26 has them, no other revision.

#include <doctest/doctest.h>

#include <set>

#include "tests/mcp/conversation.hpp"

namespace {

std::string call(int id, const char* tool, const char* arguments = "{}") {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
         R"(,"method":"tools/call","params":{"name":")" + tool + R"(","arguments":)" + arguments +
         "}}";
}

const std::string kPing = R"({"jsonrpc":"2.0","id":1,"method":"ping"})";

}  // namespace

TEST_CASE("a batch is refused outside 2025-03-26") {
  for (const char* revision : {"", "2024-11-05", "2025-06-18", "2025-11-25"}) {
    CAPTURE(revision);
    Conversation client;
    if (*revision) client.initialize(revision);
    for (const std::string& batch : {"[" + kPing + "]", std::string("[]"), std::string("[1]")}) {
      json::value answer = client.ask(batch);
      CHECK(answer.at("error").at("code") == -32600);
      CHECK_FALSE(answer.as_object().contains("id"));
    }
  }
}

TEST_CASE("a batch that is none is refused as a whole") {
  Conversation client;
  client.initialize("2025-03-26");
  std::string modern_list =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/list","params":)" + modern() + "}";
  std::string hundred_and_one = "[" + kPing;
  for (int i = 0; i < 100; ++i) hundred_and_one += "," + kPing;
  hundred_and_one += "]";
  for (const std::string& batch :
       {std::string("[]"), "[" + kPing + "," + modern_list + "]", hundred_and_one}) {
    json::value answer = client.ask(batch);
    REQUIRE(answer.is_object());
    CHECK(answer.at("error").at("code") == -32600);
  }
}

TEST_CASE("a batch is answered by one array, with an answer for each of its requests") {
  Conversation client;
  client.initialize("2025-03-26");
  json::value answers = client.ask(
      "[" + kPing + "," + call(2, "echo", R"({"text":"two"})") + "," + call(3, "crash") +
      R"(,{"jsonrpc":"2.0","method":"notifications/initialized"},7,[],)" +
      R"({"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":"2024-11-05"}},)" +
      R"({"jsonrpc":"2.0","id":5,"result":{}},)" + kPing + "]");
  REQUIRE(answers.is_array());
  std::multiset<std::string> outcomes;
  for (const json::value& answer : answers.as_array()) {
    const json::object& fields = answer.as_object();
    std::string id = fields.contains("id") ? json::serialize(fields.at("id")) : "-";
    outcomes.insert(id + (fields.contains("result")
                              ? " ok"
                              : " " + json::serialize(fields.at("error").at("code"))));
  }
  CHECK(outcomes == std::multiset<std::string>{"1 ok", "2 ok", "3 -32603", "- -32600", "- -32600",
                                               "4 -32600", "1 -32600"});
  CHECK(mcp::to_string(client.peer.legacy->revision) == "2025-03-26");
}

TEST_CASE("a batch of notifications is not answered") {
  Conversation client;
  client.initialize("2025-03-26");
  client.start(R"([{"jsonrpc":"2.0","method":"notifications/initialized"}])");
  CHECK(client.run());
  CHECK(client.sent().empty());
}

TEST_CASE("the requests of a batch run at once, and can be cancelled one by one") {
  Conversation client;
  client.initialize("2025-03-26");
  client.start("[" + call(1, "wait") + "," + call(2, "wait") + "," +
               call(3, "echo", R"({"text":"c"})") + "]");
  CHECK(client.tools.started == 2);
  CHECK(client.sent().empty());
  client.start(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}})");
  client.start(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}})");
  REQUIRE(client.run());
  CHECK(client.tools.cancelled == 2);
  CHECK(client.sent() ==
        std::vector<std::string>{R"([{"jsonrpc":"2.0","id":3,"result":{"content":[)"
                                 R"({"type":"text","text":"c"}]}}])"});
}

TEST_CASE("a batch ends when the transport does") {
  Conversation client;
  client.initialize("2025-03-26");
  client.start("[" + call(1, "wait") + "," + call(2, "wait") + "]");
  client.shut_down();
  CHECK(client.run());
  CHECK(client.tools.cancelled == 2);
  CHECK(client.peer.in_flight.empty());
  CHECK(client.sent().empty());
}
