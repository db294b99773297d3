// What is not a sound request, and how it is answered.

#include "mcp/envelope.hpp"

#include <doctest/doctest.h>

#include "tests/mcp/conversation.hpp"

namespace {

// "id code" of the one answer, "-" for an answer without an id.
std::string outcome(Conversation& client, std::string_view message) {
  json::object answer = client.ask(message).as_object();
  std::string id = answer.contains("id") ? json::serialize(answer["id"]) : "-";
  if (answer.contains("result")) return id + " ok";
  return id + " " + json::serialize(answer["error"].at("code"));
}

}  // namespace

TEST_CASE("an id comes back as it was sent") {
  for (const char* id : {
           "0",
           "1",
           "-7",
           "9007199254740993",
           "9223372036854775807",
           "18446744073709551615",
           "-9223372036854775808",
           R"("")",
           R"("1")",
           R"("ü \"quoted\"")",
           R"("null")",
       }) {
    CAPTURE(id);
    Conversation client;
    std::string request = R"({"jsonrpc":"2.0","method":"ping","id":)" + std::string(id) + "}";
    CHECK(outcome(client, request) == std::string(id) + " ok");
    std::string unknown = R"({"jsonrpc":"2.0","method":"nope","id":)" + std::string(id) + "}";
    CHECK(outcome(client, unknown) == std::string(id) + " -32601");
  }
}

TEST_CASE("an id that cannot be echoed is refused without one") {
  for (const char* id : {"null", "1.5", "1.0", "1e3", "18446744073709551616", "true", "[]", "{}",
                         "[1]", "-9223372036854775809"}) {
    CAPTURE(id);
    Conversation client;
    std::string request = R"({"jsonrpc":"2.0","method":"ping","id":)" + std::string(id) + "}";
    CHECK(outcome(client, request) == "- -32600");
  }
}

TEST_CASE("what is not a JSON-RPC message is refused, with its id if that can be read") {
  struct Row {
    const char* message;
    const char* outcome;
  };
  for (const Row& row : {
           Row{"null", "- -32600"},
           Row{"true", "- -32600"},
           Row{"5", "- -32600"},
           Row{R"("ping")", "- -32600"},
           Row{"{}", "- -32600"},
           Row{R"({"jsonrpc":"2.0"})", "- -32600"},
           Row{R"({"jsonrpc":"2.0","id":1})", "1 -32600"},
           Row{R"({"jsonrpc":"2.0","id":1,"method":5})", "1 -32600"},
           Row{R"({"jsonrpc":"2.0","id":1,"method":null})", "1 -32600"},
           Row{R"({"jsonrpc":"1.0","id":1,"method":"ping"})", "1 -32600"},
           Row{R"({"jsonrpc":2.0,"id":1,"method":"ping"})", "1 -32600"},
           Row{R"({"id":"a","method":"ping"})", R"("a" -32600)"},
           Row{R"({"method":"notifications/initialized"})", "- -32600"},
           Row{R"({"jsonrpc":"2.0","id":1,"method":"ping","params":[]})", "1 -32602"},
           Row{R"({"jsonrpc":"2.0","id":1,"method":"ping","params":"x"})", "1 -32602"},
           Row{R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":5}})", "1 -32602"},
           // Sound ones, as a comparison.
           Row{R"({"jsonrpc":"2.0","id":1,"method":"ping"})", "1 ok"},
           Row{R"({"jsonrpc":"2.0","id":1,"method":"ping","params":null})", "1 ok"},
           Row{R"({"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":[1]},"extra":1})", "1 ok"},
       }) {
    CAPTURE(row.message);
    Conversation client;
    CHECK(outcome(client, row.message) == row.outcome);
  }
}

TEST_CASE("notifications and responses nobody waits for are not answered") {
  Conversation client;
  for (const char* message : {
           R"({"jsonrpc":"2.0","method":"notifications/initialized"})",
           R"({"jsonrpc":"2.0","method":"notifications/initialized","params":[]})",
           R"({"jsonrpc":"2.0","method":"notifications/roots/list_changed"})",
           R"({"jsonrpc":"2.0","method":"tools/list"})",
           R"({"jsonrpc":"2.0","method":"no/such/thing","params":{"a":1}})",
           R"({"jsonrpc":"2.0","method":"notifications/cancelled"})",
           R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}})",
           R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}})",
           R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":5})",
           R"({"jsonrpc":"2.0","id":1,"result":{}})",
           R"({"jsonrpc":"2.0","id":1.5,"result":{}})",
           R"({"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"no"}})",
           R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}})",
       }) {
    CAPTURE(message);
    client.start(message);
    CHECK(client.run());
    CHECK(client.sent().empty());
  }
}

TEST_CASE("parameters that do not fit are named") {
  struct Row {
    const char* method;
    const char* params;
    const char* message;
  };
  for (const Row& row : {
           Row{"initialize", "{}", "params.protocolVersion: required"},
           Row{"initialize", R"({"protocolVersion":1})", "params.protocolVersion: expected string"},
           Row{"tools/call", "{}", "params.name: required"},
           Row{"tools/call", R"({"name":null})", "params.name: expected string"},
           Row{"tools/call", R"({"name":"nope"})",
               "Unknown tool: nope; known: echo, wait, refuse, crash, advance, chat, ask, defiant"},
           Row{"resources/read", "{}", "params.uri: required"},
           Row{"logging/setLevel", R"({"level":"loud"})",
               "params.level: expected one of debug info notice warning error critical alert "
               "emergency"},
       }) {
    CAPTURE(row.params);
    Conversation client;
    json::value error = client.result(row.method, row.params);
    CHECK(error.at("code") == -32602);
    std::string_view said = error.at("message").as_string();
    CHECK(said == row.message);
  }
}

TEST_CASE("client text in an error stays short") {
  Conversation client;
  json::object request;
  request["jsonrpc"] = "2.0";
  request["id"] = 1;
  request["method"] = std::string(1'000'000, 'm');
  json::value answer = client.ask(json::serialize(request));
  CHECK(json::serialize(answer).size() < 300);
}

TEST_CASE("any JSON value at all is survived") {
  json::value deep = 1;
  for (int i = 0; i < 58; ++i) deep = json::array{std::move(deep)};
  for (const char* method : {"initialize", "tools/call", "tools/list", "resources/read"}) {
    for (json::value params : {json::value(nullptr), json::value(1e308), json::value("x"), deep}) {
      for (const char* key : {"_meta", "arguments", "name", "cursor", "uri", "protocolVersion"}) {
        Conversation client;
        json::object fields;
        fields[key] = params;
        json::value result = client.result(method, json::serialize(fields));
        CHECK(result.is_object());
      }
    }
  }
}
