// Prompts and completion.

#include <doctest/doctest.h>

#include "tests/mcp/conversation.hpp"

namespace {

mcp::awaitable<mcp::GetPromptResult> greet(mcp::Call&, const mcp::Prompt::Arguments& arguments) {
  mcp::GetPromptResult result;
  result.description = "A greeting";
  mcp::PromptMessage& message = result.messages.emplace_back();
  message.role = "user";
  std::string text;
  for (const auto& [name, value] : arguments) text += name + "=" + value + ";";
  message.content = mcp::text_content(std::move(text));
  mcp::PromptMessage& sound = result.messages.emplace_back();
  sound.role = "user";
  sound.content = mcp::audio_content("AAAA", "audio/wav");
  co_return result;
}

mcp::awaitable<std::vector<std::string>> complete(mcp::Call&, const mcp::CompleteParams& params) {
  std::vector<std::string> values;
  for (int i = 0; i < (params.argument.value == "many" ? 250 : 2); ++i)
    values.push_back(params.argument.name + std::to_string(i));
  co_return values;
}

mcp::Offer with_prompts() {
  mcp::PromptArgument who{"who", "Who", "To greet", true}, how{"how"};
  mcp::Prompt prompt;
  prompt.info.name = "greet";
  prompt.info.title = "Greet";
  prompt.info.description = "Greets.";
  prompt.info.arguments.push_back(who);
  prompt.info.arguments.push_back(how);
  prompt.get = greet;
  mcp::Offer offer;
  offer.prompts.push_back(std::move(prompt));
  offer.complete = complete;
  return offer;
}

}  // namespace

TEST_CASE("prompts are listed as the revision knows them") {
  for (const char* revision : {"2024-11-05", "2025-06-18"}) {
    CAPTURE(revision);
    Conversation client(with_prompts());
    json::value hello = client.initialize(revision);
    CHECK(hello.at("capabilities").at("prompts") == json::object());
    bool old = std::string_view(revision) == "2024-11-05";
    CHECK(hello.at("capabilities").as_object().contains("completions") == !old);
    json::value listed = client.result("prompts/list").at("prompts");
    REQUIRE(listed.as_array().size() == 1);
    json::object prompt = listed.at(0).as_object();
    CHECK(prompt.contains("title") == !old);
    CHECK(prompt["arguments"].at(0).as_object().contains("title") == !old);
    CHECK(prompt["arguments"].at(0).at("required") == true);
    CHECK(prompt["arguments"].at(1) == json::parse(R"({"name":"how"})"));
  }
}

TEST_CASE("prompts/get checks the arguments") {
  struct Row {
    const char* params;
    const char* says;  // what the error says; null: a result
  };
  for (const Row& row : {
           Row{R"("name":"greet","arguments":{"who":"Ada"})", nullptr},
           Row{R"("name":"greet","arguments":{"who":"Ada","other":5})", nullptr},
           Row{R"("name":"greet","arguments":{})", "params.arguments.who: required"},
           Row{R"("name":"greet")", "params.arguments.who: required"},
           Row{R"("name":"greet","arguments":{"who":5})", "params.arguments.who: expected string"},
           Row{R"("name":"greet","arguments":[])", "params.arguments: expected object"},
           Row{R"("name":"other")", "Unknown prompt: other"},
           Row{R"("arguments":{})", "params.name: required"},
       }) {
    CAPTURE(row.params);
    Conversation client(with_prompts());
    json::value result = client.result("prompts/get", modern(row.params));
    if (row.says) {
      CHECK(result.at("code") == -32602);
      CHECK(result.at("message") == row.says);
    } else {
      CHECK(result.at("messages").at(0).at("content").at("text") == "who=Ada;");
      CHECK(result.at("resultType") == "complete");
    }
  }
}

TEST_CASE("what a revision has no block for becomes a text") {
  Conversation client(with_prompts());
  client.initialize("2024-11-05");
  json::value result =
      client.result("prompts/get", R"({"name":"greet","arguments":{"who":"Ada"}})");
  CHECK(result.at("messages").at(1).at("content").at("type") == "text");
}

TEST_CASE("completion gives at most a hundred values, and says how many there are") {
  Conversation client(with_prompts());
  json::value few = client.result(
      "completion/complete",
      modern(R"("ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"who","value":""})"));
  CHECK(few.at("completion") ==
        json::parse(R"({"values":["who0","who1"],"total":2,"hasMore":false})"));
  json::value many = client.result(
      "completion/complete",
      modern(
          R"("ref":{"type":"ref/resource","uri":"test://{name}"},"argument":{"name":"name","value":"many"})"));
  CHECK(many.at("completion").at("values").as_array().size() == 100);
  CHECK(many.at("completion").at("total") == 250);
  CHECK(many.at("completion").at("hasMore") == true);
}

TEST_CASE("completion is for prompts and templates that exist") {
  Conversation client(with_prompts());
  for (const char* ref : {R"({"type":"ref/prompt","name":"other"})", R"({"type":"ref/prompt"})",
                          R"({"type":"ref/resource","uri":"test://here"})",
                          R"({"type":"ref/other","name":"greet"})", R"({})", R"(5)"}) {
    CAPTURE(ref);
    std::string params = R"("ref":)" + std::string(ref) + R"(,"argument":{"name":"a","value":""})";
    CHECK(client.result("completion/complete", modern(params)).at("code") == -32602);
  }
}

TEST_CASE("what is not offered is no method") {
  Conversation client;
  for (const char* method : {"prompts/list", "prompts/get", "completion/complete",
                             "subscriptions/listen", "resources/subscribe"}) {
    CAPTURE(method);
    CHECK(client.result(method, modern()).at("code") == -32601);
    CHECK(client.result(method).at("code") == -32601);
  }
}
