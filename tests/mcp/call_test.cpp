// tools/call: arguments, failures, progress and log messages.

#include "mcp/call.hpp"

#include <doctest/doctest.h>

#include "tests/mcp/conversation.hpp"

namespace {

// The member `key` of every notification of this method that was sent.
std::string said_in(const std::vector<std::string>& messages, std::string_view method,
                    const char* key) {
  std::string out;
  for (const std::string& text : messages) {
    json::object message = json::parse(text).as_object();
    if (!message.contains("method") || message["method"].as_string() != method) continue;
    const json::value* found = message["params"].as_object().if_contains(key);
    out += (found ? json::serialize(*found) : "-") + " ";
  }
  return out;
}

std::vector<std::string> messages_of(Conversation& client, std::string params) {
  client.start(R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":)" + params + "}");
  REQUIRE(client.run());
  return client.sent();
}

}  // namespace

TEST_CASE("arguments are taken as clients send them") {
  struct Row {
    const char* params;
    const char* text;
    bool failed;
  };
  for (const Row& row : {
           Row{R"({"name":"echo","arguments":{"text":"a"}})", "a", false},
           Row{R"({"name":"echo","arguments":{"text":"a","times":"2"}})", "aa", false},
           Row{R"({"name":"echo","arguments":{"text":"a","times":null}})", "a", false},
           Row{R"({"name":"echo","arguments":"{\"text\":\"a\"}"})", "a", false},
           Row{R"({"name":"echo"})", "arguments.text: required", true},
           Row{R"({"name":"echo","arguments":null})", "arguments.text: required", true},
           Row{R"({"name":"echo","arguments":{"text":"a","times":"x"}})",
               "arguments.times: expected integer", true},
           Row{R"({"name":"echo","arguments":{"text":"a","tiems":2}})",
               "arguments.tiems: unknown argument; known: text, times", true},
           Row{R"({"name":"echo","arguments":[]})", "arguments: expected object, got array", true},
           Row{R"({"name":"echo","arguments":5})", "arguments: expected object, got int64", true},
           Row{R"({"name":"echo","arguments":"text"})", "arguments: expected object, got string",
               true},
           Row{R"({"name":"echo","arguments":"[1]"})", "arguments: expected object, got array",
               true},
           Row{R"({"name":"refuse","arguments":{}})", "No such session. Your sessions: none.",
               true},
       }) {
    CAPTURE(row.params);
    Conversation client;
    json::value result = client.result("tools/call", row.params);
    CHECK(text_of(result) == row.text);
    CHECK(result.as_object().contains("isError") == row.failed);
    if (row.failed) CHECK(result.at("isError") == true);
  }
}

TEST_CASE(
    "a defect in a tool is an internal error that gives nothing away, and takes nothing down") {
  Conversation client;
  json::value error = client.result("tools/call", R"({"name":"crash"})");
  CHECK(error.at("code") == -32603);
  CHECK(error.at("message") == "crash failed inside the server; its log says why");
  error = client.result("resources/read", R"({"uri":"test://broken"})");
  CHECK(error.at("message") == "resources/read failed inside the server; its log says why");
  CHECK(client.result("ping") == json::object());
}

TEST_CASE("a resource that is not there has the error code of the era") {
  Conversation client;
  json::value error = client.result("resources/read", R"({"uri":"test://gone"})");
  CHECK(error.at("code") == -32002);
  CHECK(error.at("data") == json::parse(R"({"uri":"test://gone"})"));
  error = client.result("resources/read", modern(R"("uri":"test://gone")"));
  CHECK(error.at("code") == -32602);
  CHECK(error.at("data") == json::parse(R"({"uri":"test://gone"})"));
}

TEST_CASE("what a client sent is quoted within bounds") {
  Conversation client;
  std::string huge(2'000'000, 'x');
  std::string uri = R"({"uri":"test://gone)" + huge + R"("})";
  CHECK(json::serialize(client.result("resources/read", uri)).size() < 100'000);
  std::string call = R"({"name":"echo","arguments":{"text":"a","times":")" + huge + R"("}})";
  CHECK(json::serialize(client.result("tools/call", call)).size() < 100'000);
  call = R"({"name":"refuse","arguments":{")" + huge + R"(":1}})";
  CHECK(json::serialize(client.result("tools/call", call)).size() < 100'000);
}

TEST_CASE("progress keeps the token's type, grows strictly and ends with the answer") {
  for (const char* token : {R"("p")", "7", "18446744073709551615"}) {
    CAPTURE(token);
    Conversation client;
    auto messages = messages_of(
        client, R"({"name":"advance","_meta":{"progressToken":)" + std::string(token) + "}}");
    std::string three = std::string(token) + " ";
    CHECK(said_in(messages, "notifications/progress", "progress") == "0 1 1.5E0 2 ");
    CHECK(said_in(messages, "notifications/progress", "progressToken") ==
          three + three + three + three);
    CHECK(json::parse(messages.back()).as_object().contains("result"));
  }
}

TEST_CASE("progress is for those who gave a token, and have the time to read it") {
  for (const char* meta :
       {"{}", R"({"progressToken":null})", R"({"progressToken":1.5})", R"({"progressToken":{}})"}) {
    CAPTURE(meta);
    Conversation client;
    auto messages = messages_of(client, R"({"name":"advance","_meta":)" + std::string(meta) + "}");
    CHECK(messages.size() == 1);
  }
  Conversation client;
  client.out.slow = true;
  client.start(R"({"jsonrpc":"2.0","id":1,"method":"tools/call",)"
               R"("params":{"name":"advance","_meta":{"progressToken":1}}})");
  CHECK(client.sent().empty());
}

TEST_CASE("progress has a message from 2025-03-26") {
  for (const char* revision : {"2024-11-05", "2025-03-26"}) {
    Conversation client;
    client.initialize(revision);
    auto messages = messages_of(client, R"({"name":"advance","_meta":{"progressToken":1}})");
    bool first = std::string_view(revision) == "2024-11-05";
    CHECK(said_in(messages, "notifications/progress", "message") ==
          (first ? "- - - - " : R"("at 0.0" "at 1.0" "at 1.5" "at 2.0" )"));
  }
}

TEST_CASE("log messages: from the level that was set, in the modern era only when asked for") {
  struct Row {
    const char* level;  // what is set or asked for; null: nothing
    bool in_modern_era;
    const char* said;
  };
  for (const Row& row : {
           Row{nullptr, false, R"("warning" "error" )"},
           Row{"debug", false, R"("debug" "warning" "error" )"},
           Row{"error", false, R"("error" )"},
           Row{"emergency", false, ""},
           Row{nullptr, true, ""},
           Row{"debug", true, R"("debug" "warning" "error" )"},
           Row{"error", true, R"("error" )"},
       }) {
    CAPTURE(row.level);
    CAPTURE(row.in_modern_era);
    Conversation client;
    std::string params = R"({"name":"chat"})";
    if (row.in_modern_era) {
      std::string key = R"("io.modelcontextprotocol/logLevel":")";
      params = modern(R"("name":"chat")", "{}", row.level ? key + row.level + "\"" : "");
      // What a legacy client of the same connection has set is not this one's.
      client.result("logging/setLevel", R"({"level":"debug"})");
    } else if (row.level) {
      client.result("logging/setLevel", R"({"level":")" + std::string(row.level) + "\"}");
    }
    auto messages = messages_of(client, params);
    CHECK(said_in(messages, "notifications/message", "level") == row.said);
    CHECK(json::parse(messages.back()).as_object().contains("result"));
  }
  Conversation client;
  auto messages = messages_of(client, R"({"name":"chat"})");
  CHECK(messages[0] == R"({"jsonrpc":"2.0","method":"notifications/message","params":)"
                       R"({"level":"warning","logger":"pykeep","data":"a warning"}})");
}
