// What handlers may ask of their client: several things at once, of all kinds, in both eras.

#include <doctest/doctest.h>

#include "mcp/form.hpp"
#include "tests/mcp/conversation.hpp"

namespace {

const std::string kAll = R"({"elicitation":{},"sampling":{},"roots":{}})";

mcp::InputRequests three_questions() {
  mcp::ElicitParams form;
  form.message = "Who?";
  form.requestedSchema =
      json::parse(
          R"({"type":"object","properties":{"name":{"type":"string"}},"required":["name"]})")
          .as_object();
  mcp::SamplingMessage message{"user", mcp::text_content("Greet")};
  mcp::CreateMessageParams sampling;
  sampling.messages.push_back(message);
  sampling.maxTokens = 10;
  mcp::InputRequests requests;
  requests["a_name"] = mcp::elicitation(form);
  requests["b_greeting"] = mcp::sampling(sampling);
  requests["c_roots"] = mcp::list_roots();
  return requests;
}

std::string told(const mcp::InputResponses& responses) {
  std::string text;
  for (const auto& [name, result] : responses) text += name + " ";
  return text;
}

constexpr std::chrono::milliseconds kLimit{60'000};

// Asks without a state.
mcp::awaitable<mcp::CallToolResult> ask_three(mcp::Call& call, None) {
  mcp::InputRequests requests = three_questions();
  std::optional<std::string> no_state;
  mcp::InputResponses responses =
      co_await call.ask(std::move(requests), std::move(no_state), kLimit);
  co_return said(told(responses));
}

// Makes the client come back, without a question.
mcp::awaitable<mcp::CallToolResult> come_back(mcp::Call& call, None) {
  if (call.resumed()) co_return said("back from " + call.resumed()->state);
  mcp::InputRequests none;
  std::optional<std::string> state = "before";
  mcp::InputResponses responses = co_await call.ask(std::move(none), std::move(state), kLimit);
  co_return said("never left");
}

mcp::awaitable<mcp::GetPromptResult> prompt(mcp::Call& call, const mcp::Prompt::Arguments&) {
  mcp::InputRequests requests = three_questions();
  std::optional<std::string> no_state;
  mcp::InputResponses responses =
      co_await call.ask(std::move(requests), std::move(no_state), kLimit);
  mcp::GetPromptResult result;
  result.description = told(responses);
  co_return result;
}

mcp::Offer asking() {
  mcp::Offer offer;
  mcp::ToolInfo three, back;
  three.name = "three";
  back.name = "back";
  offer.tools.push_back(mcp::make_tool<None>(three, ask_three));
  offer.tools.push_back(mcp::make_tool<None>(back, come_back));
  mcp::Prompt asks;
  asks.info.name = "asks";
  asks.get = prompt;
  offer.prompts.push_back(asks);
  return offer;
}

const std::string kName = R"("a_name":{"action":"accept","content":{"name":"Ada"}})";
const std::string kGreeting =
    R"("b_greeting":{"role":"assistant","content":{"type":"text","text":"Hi"},"model":"m"})";
const std::string kRoots = R"("c_roots":{"roots":[{"uri":"file:///a"}]})";
const std::string kAnswers = "{" + kName + "," + kGreeting + "," + kRoots + "}";

}  // namespace

TEST_CASE("a legacy client is asked one thing after the other") {
  Conversation client(asking());
  client.initialize("2025-11-25", kAll);
  client.start(R"({"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"three"}})");
  struct Row {
    const char* method;
    const char* response;
  };
  int id = 0;
  for (const Row& row :
       {Row{"elicitation/create", R"("result":{"action":"accept","content":{"name":5}})"},  // unfit
        Row{"sampling/createMessage",
            R"("result":{"role":"assistant","content":{"type":"text","text":"Hi"},"model":"m"})"},
        Row{"roots/list", R"("error":{"code":-1,"message":"no"})"}}) {
    CAPTURE(row.method);
    std::vector<std::string> sent = client.sent();
    REQUIRE(sent.size() == 1);
    CHECK(json::parse(sent[0]).at("method") == row.method);
    client.start(R"({"jsonrpc":"2.0","id":)" + std::to_string(++id) + "," + row.response + "}");
  }
  REQUIRE(client.out.messages.size() == 1);
  CHECK(text_of(client.out.messages[0].at("result")) == "b_greeting ");
}

TEST_CASE("a modern client is asked all at once, and its retry answers without a state") {
  struct Row {
    const char* method;
    const char* fields;
  };
  for (const Row& row :
       {Row{"tools/call", R"("name":"three")"}, Row{"prompts/get", R"("name":"asks")"}}) {
    CAPTURE(row.method);
    Conversation client(asking());
    json::value asked = client.result(row.method, modern(row.fields, kAll));
    CHECK(asked.at("resultType") == "input_required");
    CHECK_FALSE(asked.as_object().contains("requestState"));
    CHECK(asked.at("inputRequests").as_object().size() == 3);
    CHECK(asked.at("inputRequests").at("c_roots") ==
          json::parse(R"({"method":"roots/list","params":{}})"));
    std::string retry = std::string(row.fields) + R"(,"inputResponses":)";
    json::value answered = client.result(row.method, modern(retry + kAnswers, kAll));
    CHECK(answered.at("resultType") == "complete");
    CHECK(json::serialize(answered).find("a_name b_greeting c_roots ") != std::string::npos);
  }
}

TEST_CASE("missing answers are asked for again, unfit ones are an error that names them") {
  struct Row {
    std::string responses;
    const char* says;  // null: asked again
  };
  for (const Row& row : {
           Row{"{}", nullptr},
           Row{"null", nullptr},
           Row{"{" + kName + "," + kRoots + "}", nullptr},
           Row{"[]", "params.inputResponses: expected object"},
           Row{R"({"a_name":5})", "params.inputResponses.a_name: expected object"},
           Row{R"({"a_name":{"action":"maybe"}})",
               "params.inputResponses.a_name.action: expected one of accept decline cancel"},
           Row{R"({"a_name":{"action":"accept"}})",
               "params.inputResponses.a_name.content.name: required"},
           Row{R"({"a_name":{"action":"accept","content":{"name":5}}})",
               "params.inputResponses.a_name.content.name: expected string"},
           Row{"{" + kName + R"(,"b_greeting":{"role":"assistant"}})",
               "params.inputResponses.b_greeting: content: required"},
           Row{"{" + kName + "," + kGreeting + R"(,"c_roots":{"roots":[{}]}})",
               "params.inputResponses.c_roots: roots[0].uri: required"},
       }) {
    CAPTURE(row.responses);
    Conversation client(asking());
    json::value result = client.result(
        "tools/call", modern(R"("name":"three","inputResponses":)" + row.responses, kAll));
    if (row.says) {
      CHECK(result.at("code") == -32602);
      CHECK(result.at("message") == row.says);
    } else {
      CHECK(result.at("resultType") == "input_required");
    }
  }
}

TEST_CASE("a client is only asked for what it serves") {
  struct Row {
    const char* capabilities;
    const char* lacks;
  };
  for (const Row& row : {
           Row{"{}", R"({"elicitation":{"form":{}},"roots":{},"sampling":{}})"},
           Row{R"({"elicitation":{"url":{}},"roots":{}})",
               R"({"elicitation":{"form":{}},"sampling":{}})"},
           Row{R"({"elicitation":{},"sampling":{}})", R"({"roots":{}})"},
       }) {
    CAPTURE(row.capabilities);
    Conversation client(asking());
    json::value error = client.result("tools/call", modern(R"("name":"three")", row.capabilities));
    CHECK(error.at("code") == -32021);
    CHECK(error.at("data").at("requiredCapabilities") == json::parse(row.lacks));
  }
  Conversation legacy(asking());
  legacy.initialize("2025-11-25", R"({"elicitation":{}})");
  CHECK(text_of(legacy.result("tools/call", R"({"name":"three"})")) ==
        "This client does not serve sampling/createMessage.");
}

TEST_CASE("a state without questions just makes the client come again") {
  Conversation client(asking());
  json::value asked = client.result("tools/call", modern(R"("name":"back")"));
  CHECK(asked.at("resultType") == "input_required");
  CHECK_FALSE(asked.as_object().contains("inputRequests"));
  std::string token(asked.at("requestState").as_string());
  json::value again =
      client.result("tools/call", modern(R"("name":"back","requestState":")" + token + "\""));
  CHECK(text_of(again) == "back from before");
  Conversation legacy(asking());
  CHECK(text_of(legacy.result("tools/call", R"({"name":"back"})")) == "never left");
}

TEST_CASE("a filled-in form is held to what was asked for") {
  const json::object schema = json::parse(R"({"type":"object","properties":{
    "text":{"type":"string","minLength":2,"maxLength":3},
    "pick":{"type":"string","enum":["a","b"]},
    "titled":{"type":"string","oneOf":[{"const":"x","title":"X"}]},
    "count":{"type":"integer","minimum":1,"maximum":5},
    "share":{"type":"number","maximum":0.5},
    "sure":{"type":"boolean"},
    "many":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b"]}},
    "named":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]}}
  },"required":["sure"]})")
                                  .as_object();
  struct Row {
    const char* content;
    const char* problem;  // null: it fits
  };
  for (const Row& row : {
           Row{R"({"sure":true})", nullptr},
           Row{R"({"sure":true,"text":"äöü","pick":"b","titled":"x","count":5,"share":0.5})",
               nullptr},
           Row{R"({"sure":true,"count":3.0,"share":-2,"many":["a","b"],"named":["x"]})", nullptr},
           Row{R"({"sure":true,"unknown":[]})", nullptr},
           Row{R"({})", "content.sure: required"},
           Row{R"({"sure":"true"})", "content.sure: expected boolean"},
           Row{R"({"sure":true,"text":"a"})", "content.text: minLength is 2"},
           Row{R"({"sure":true,"text":"äöüß"})", "content.text: maxLength is 3"},
           Row{R"({"sure":true,"text":null})", "content.text: expected string"},
           Row{R"({"sure":true,"pick":"c"})", "content.pick: not one of the choices"},
           Row{R"({"sure":true,"titled":"X"})", "content.titled: not one of the choices"},
           Row{R"({"sure":true,"count":1.5})", "content.count: expected integer"},
           Row{R"({"sure":true,"count":6})", "content.count: maximum is 5"},
           Row{R"({"sure":true,"count":0})", "content.count: minimum is 1"},
           Row{R"({"sure":true,"share":"1"})", "content.share: expected number"},
           Row{R"({"sure":true,"many":"a"})", "content.many: expected array"},
           Row{R"({"sure":true,"many":[]})", "content.many: minItems is 1"},
           Row{R"({"sure":true,"many":["a","c"]})",
               "content.many: an item is not one of the choices"},
           Row{R"({"sure":true,"named":[5]})", "content.named: an item is not one of the choices"},
       }) {
    CAPTURE(row.content);
    json::object content = json::parse(row.content).as_object();
    if (row.problem)
      CHECK_THROWS_WITH(mcp::check_form(schema, content, "content"), row.problem);
    else
      CHECK_NOTHROW(mcp::check_form(schema, content, "content"));
  }
}
