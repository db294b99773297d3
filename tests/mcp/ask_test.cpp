// How a tool asks the user: a request of ours to legacy clients, a result to modern ones.

#include <doctest/doctest.h>

#include "mcp/questions.hpp"
#include "tests/mcp/conversation.hpp"

namespace {

const std::string kCan = R"({"elicitation":{}})";

std::string ask_call(int id, std::string params) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":"tools/call","params":)" +
         params + "}";
}

const std::string kLegacyParams = R"({"name":"ask","arguments":{"text":"Who?"}})";
const std::string kFields = R"("name":"ask","arguments":{"text":"Who?"})";

// Params of the same modern call once more, with `more` fields.
std::string retry(const std::string& state, const std::string& responses,
                  const std::string& fields = kFields) {
  std::string more = fields + R"(,"requestState":")" + state + "\"";
  if (!responses.empty()) more += R"(,"inputResponses":)" + responses;
  return modern(more, kCan);
}

std::string state_of(const json::value& input_required) {
  REQUIRE(input_required.at("resultType") == "input_required");
  return std::string(input_required.at("requestState").as_string());
}

const std::string kAda = R"({"answer":{"action":"accept","content":{"name":"Ada"}}})";

}  // namespace

TEST_CASE("a legacy client is asked by a request, and its response is the answer") {
  struct Row {
    const char* response;
    const char* text;
  };
  for (const Row& row : {
           Row{R"("result":{"action":"accept","content":{"name":"Ada"}})",
               R"(accept {"name":"Ada"};)"},
           Row{R"("result":{"action":"accept"})", "accept {};"},
           Row{R"("result":{"action":"decline","content":{"name":"x"}})", "decline;"},
           Row{R"("result":{"action":"cancel"})", "cancel;"},
           // A client that makes no sense has not answered.
           Row{R"("result":{"action":"maybe"})", "cancel;"},
           Row{R"("result":{"action":5})", "cancel;"},
           Row{R"("result":{"action":"accept","content":"Ada"})", "cancel;"},
           Row{R"("result":{})", "cancel;"},
           Row{R"("result":null)", "cancel;"},
           Row{R"("result":[])", "cancel;"},
           Row{R"("error":{"code":-32601,"message":"no such method"})", "cancel;"},
           Row{R"("error":null)", "cancel;"},
       }) {
    CAPTURE(row.response);
    Conversation client;
    client.initialize("2025-06-18", kCan);
    client.start(ask_call(7, kLegacyParams));
    CHECK(client.sent() ==
          std::vector<std::string>{
              R"({"jsonrpc":"2.0","method":"elicitation/create","params":{"message":"Who?",)"
              R"("requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}},)"
              R"("id":1})"});
    // Neither its own ping nor a response to another id ends the wait.
    client.start(R"({"jsonrpc":"2.0","id":1,"method":"ping"})");
    client.start(R"({"jsonrpc":"2.0","id":2,"result":{"action":"accept"}})");
    client.start(R"({"jsonrpc":"2.0","id":"1","result":{"action":"accept"}})");
    CHECK(client.sent().size() == 1);
    json::value answer =
        client.ask(R"({"jsonrpc":"2.0","id":1,)" + std::string(row.response) + "}");
    CHECK(answer.at("id") == 7);
    CHECK(text_of(answer.at("result")) == row.text);
    CHECK(client.peer.asked.empty());
  }
}

TEST_CASE("the form mode is named from the revision that has modes") {
  Conversation client;
  client.initialize("2025-11-25", kCan);
  client.start(ask_call(7, kLegacyParams));
  REQUIRE(client.out.messages.size() == 1);
  CHECK(client.out.messages[0].at("params").at("mode") == "form");
}

TEST_CASE("two questions at once are told apart by their ids") {
  Conversation client;
  client.initialize("2025-11-25", kCan);
  client.start(ask_call(7, kLegacyParams));
  client.start(ask_call(8, kLegacyParams));
  CHECK(client.sent().size() == 2);
  client.start(R"({"jsonrpc":"2.0","id":2,"result":{"action":"decline"}})");
  client.start(R"({"jsonrpc":"2.0","id":1,"result":{"action":"cancel"}})");
  REQUIRE(client.out.messages.size() == 2);
  CHECK(client.out.messages[0].at("id") == 8);
  CHECK(text_of(client.out.messages[0].at("result")) == "decline;");
  CHECK(client.out.messages[1].at("id") == 7);
  CHECK(text_of(client.out.messages[1].at("result")) == "cancel;");
}

TEST_CASE("a client that never answers has cancelled, and its question is withdrawn") {
  Conversation client;
  client.tools.ask_limit = std::chrono::milliseconds(20);
  client.initialize("2025-11-25", kCan);
  client.start(ask_call(7, kLegacyParams));
  REQUIRE(client.run());
  std::vector<std::string> sent = client.sent();
  REQUIRE(sent.size() == 3);
  CHECK(sent[1] == R"({"jsonrpc":"2.0","method":"notifications/cancelled",)"
                   R"("params":{"requestId":1,"reason":"no longer needed"}})");
  CHECK(text_of(json::parse(sent[2]).at("result")) == "cancel;");
  // A late answer is nobody's.
  client.start(R"({"jsonrpc":"2.0","id":1,"result":{"action":"accept"}})");
  CHECK(client.sent().empty());
}

TEST_CASE("cancelling a call that waits for the user withdraws the question") {
  Conversation client;
  client.initialize("2025-11-25", kCan);
  client.start(ask_call(7, kLegacyParams));
  client.sent();
  client.start(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}})");
  REQUIRE(client.run());
  std::vector<std::string> sent = client.sent();
  REQUIRE(sent.size() == 1);
  CHECK(json::parse(sent[0]).at("method") == "notifications/cancelled");
  CHECK(client.peer.asked.empty());
}

TEST_CASE("only a client that can show a form is asked") {
  struct Row {
    const char* revision;
    const char* capabilities;
    bool asked;
  };
  for (const Row& row : {
           Row{"2025-03-26", R"({"elicitation":{}})", false},  // does not exist there
           Row{"2025-06-18", R"({"elicitation":{}})", true},
           Row{"2025-11-25", "{}", false},
           Row{"2025-11-25", R"({"elicitation":null})", false},
           Row{"2025-11-25", R"({"elicitation":true})", false},
           Row{"2025-11-25", R"({"elicitation":{"form":{}}})", true},
           Row{"2025-11-25", R"({"elicitation":{"form":{},"url":{}}})", true},
           Row{"2025-11-25", R"({"elicitation":{"url":{}}})", false},
           Row{"2026-07-28", "{}", false},
           Row{"2026-07-28", R"({"elicitation":{}})", true},
           Row{"2026-07-28", R"({"elicitation":{"url":{}}})", false},
       }) {
    CAPTURE(row.revision);
    CAPTURE(row.capabilities);
    Conversation client;
    bool in_modern_era = std::string_view(row.revision) == "2026-07-28";
    if (!in_modern_era) client.initialize(row.revision, row.capabilities);
    client.start(ask_call(7, in_modern_era ? modern(kFields, row.capabilities) : kLegacyParams));
    REQUIRE(client.out.messages.size() == 1);
    json::object message = client.out.messages[0].as_object();
    if (in_modern_era && row.asked) {
      CHECK(message["result"].at("resultType") == "input_required");
    } else if (in_modern_era) {
      CHECK(message["error"].at("code") == -32021);
      CHECK(message["error"].at("data") ==
            json::parse(R"({"requiredCapabilities":{"elicitation":{"form":{}}}})"));
    } else if (row.asked) {
      CHECK(message["method"] == "elicitation/create");
    } else {
      CHECK(text_of(message["result"]) == "This client cannot ask its user.");
    }
  }
  Conversation unreachable;
  unreachable.out.reaches_client = false;
  unreachable.initialize("2025-11-25", kCan);
  CHECK(unreachable.result("tools/call", kLegacyParams).at("isError") == true);
}

TEST_CASE("a modern call ends with the question, and its retry goes on with the answer") {
  Conversation client;
  json::value asked = client.result("tools/call", modern(kFields, kCan));
  std::string state = state_of(asked);
  CHECK(state.size() == 26);
  CHECK(asked.at("inputRequests") ==
        json::parse(
            R"({"answer":{"method":"elicitation/create","params":{"mode":"form","message":"Who?",)"
            R"("requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}})"));
  CHECK_FALSE(asked.as_object().contains("ttlMs"));
  CHECK(asked.at("_meta").as_object().contains("io.modelcontextprotocol/serverInfo"));
  CHECK(client.serving() == 0);  // nothing waits for the user

  json::value result = client.result("tools/call", retry(state, kAda));
  CHECK(result.at("resultType") == "complete");
  CHECK(text_of(result) == R"(accept {"name":"Ada"};)");
}

TEST_CASE("a call may ask again, with a new token each time") {
  Conversation client;
  std::string fields = R"("name":"ask","arguments":{"text":"Who?","times":2})";
  std::string first = state_of(client.result("tools/call", modern(fields, kCan)));
  std::string second = state_of(client.result("tools/call", retry(first, kAda, fields)));
  CHECK(first != second);
  CHECK(client.result("tools/call", retry(first, kAda, fields)).at("code") == -32602);
  json::value result = client.result(
      "tools/call", retry(second, R"({"answer":{"action":"decline"},"other":5})", fields));
  CHECK(text_of(result) == R"(accept {"name":"Ada"};decline;)");
}

TEST_CASE(
    "a missing answer is asked for again, a malformed one is an error; the token stays good") {
  Conversation client;
  std::string state = state_of(client.result("tools/call", modern(kFields, kCan)));
  for (const char* missing : {"", "null", "{}", R"({"other":{"action":"accept"}})"}) {
    CAPTURE(missing);
    CHECK(state_of(client.result("tools/call", retry(state, missing))) == state);
  }
  for (const char* malformed :
       {"[]", R"("x")", R"({"answer":5})", R"({"answer":{}})", R"({"answer":{"action":"maybe"}})",
        R"({"answer":{"action":"accept","content":[]}})", R"({"answer":null})"}) {
    CAPTURE(malformed);
    CHECK(client.result("tools/call", retry(state, malformed)).at("code") == -32602);
  }
  CHECK(text_of(client.result("tools/call", retry(state, kAda))) == R"(accept {"name":"Ada"};)");
}

TEST_CASE("a token is good once, for its own principal and call") {
  Conversation client;
  std::string state = state_of(client.result("tools/call", modern(kFields, kCan)));
  auto code = [&](const std::string& params) {
    return json::serialize(client.result("tools/call", params).at("code"));
  };
  CHECK(code(retry("", kAda)) == "-32602");
  CHECK(code(retry("0123456789abcdef0123456789abcdef", kAda)) == "-32602");
  CHECK(code(retry(state, kAda, R"("name":"ask","arguments":{"text":"Whom?"})")) == "-32602");
  CHECK(code(retry(state, kAda, R"("name":"echo","arguments":{"text":"Who?"})")) == "-32602");
  CHECK(code(modern(kFields + R"(,"requestState":5)", kCan)) == "-32602");
  client.peer.principal = "somebody else";
  CHECK(code(retry(state, kAda)) == "-32602");
  client.peer.principal = "local";
  CHECK(text_of(client.result("tools/call", retry(state, kAda))) == R"(accept {"name":"Ada"};)");
  CHECK(code(retry(state, kAda)) == "-32602");
}

TEST_CASE("legacy calls know nothing of request states") {
  Conversation client;
  client.initialize("2025-11-25");
  json::value result = client.result(
      "tools/call",
      R"({"name":"echo","arguments":{"text":"a"},"requestState":5,"inputResponses":[]})");
  CHECK(text_of(result) == "a");
}

TEST_CASE("open questions expire, and the oldest make room") {
  using mcp::Questions;
  Questions questions;
  auto now = Questions::Clock::now();
  auto question = [](std::size_t bytes) {
    mcp::Question one;
    one.principal = "p";
    one.method = "t";
    one.state = std::string(bytes, 's');
    return one;
  };
  auto known = [&](const std::string& token, Questions::Clock::time_point when) {
    return questions.find(token, "p", "t", {}, when) != nullptr;
  };
  std::string first = questions.open(question(1), now);
  CHECK(known(first, now + Questions::kLifetime - std::chrono::seconds(1)));
  CHECK_FALSE(known(first, now + Questions::kLifetime));
  CHECK(questions.size() == 0);

  std::vector<std::string> tokens;
  for (std::size_t i = 0; i <= Questions::kMaxOpen; ++i)
    tokens.push_back(questions.open(question(1), now + std::chrono::milliseconds(i)));
  CHECK(questions.size() == Questions::kMaxOpen);
  CHECK_FALSE(known(tokens[0], now));
  CHECK(known(tokens[1], now));

  std::string big = questions.open(question(Questions::kMaxBytes - 1000), now);
  CHECK(known(big, now));
  CHECK(questions.size() <= 1000);
}
