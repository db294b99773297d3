// Fixtures that ask the client: by requests of their own in the legacy era, by `input_required`
// results in the modern one. Most are the same in both.

#include "tests/conformance/fixtures.hpp"

namespace conformance {

namespace json = boost::json;
using mcp::awaitable;
using mcp::Call;
using mcp::CallToolResult;

namespace {

constexpr std::chrono::seconds kLimit{20};
constexpr std::nullopt_t kNoState = std::nullopt;

mcp::InputRequest sample(std::string prompt) {
  mcp::SamplingMessage message;
  message.role = "user";
  message.content = mcp::text_content(std::move(prompt));
  mcp::CreateMessageParams params;
  params.messages.push_back(std::move(message));
  params.maxTokens = 100;
  return mcp::sampling(params);
}

mcp::InputRequest form(std::string message, const char* schema) {
  mcp::ElicitParams params;
  params.message = std::move(message);
  params.requestedSchema = json::parse(schema).as_object();
  return mcp::elicitation(params);
}

CallToolResult told(const mcp::InputResponses& responses) {
  std::string text;
  for (const auto& [name, response] : responses)
    text += name + ": " + json::serialize(response) + "\n";
  return text_result(text.empty() ? "nothing was answered" : text);
}

// Asks one thing and tells what came of it.
awaitable<CallToolResult> ask_one(Call& call, std::string name, mcp::InputRequest request) {
  mcp::InputRequests requests;
  requests[name] = std::move(request);
  mcp::InputResponses responses = co_await call.ask(std::move(requests), kNoState, kLimit);
  co_return told(responses);
}

mcp::Tool asks_one(std::string name, const char* key, mcp::InputRequest request) {
  auto f = [key, request](Call& call, Nothing) { return ask_one(call, key, request); };
  return tool<Nothing>(std::move(name), "Asks the client.", "{}", f);
}

struct Prompt {
  std::string prompt;
};
BOOST_DESCRIBE_STRUCT(Prompt, (), (prompt))

struct Message {
  std::string message;
};
BOOST_DESCRIBE_STRUCT(Message, (), (message))

constexpr const char* kUser = R"({
  "type": "object",
  "properties": {
    "username": {"type": "string", "description": "User's name"},
    "email": {"type": "string", "description": "User's address"}
  },
  "required": ["username", "email"]
})";

// elicitation-sep1034-defaults
constexpr const char* kDefaults = R"({
  "type": "object",
  "properties": {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {
      "type": "string", "enum": ["active", "inactive", "pending"], "default": "active"
    },
    "verified": {"type": "boolean", "default": true}
  },
  "required": []
})";

// elicitation-sep1330-enums
constexpr const char* kEnums = R"({
  "type": "object",
  "properties": {
    "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
    "titledSingle": {
      "type": "string",
      "oneOf": [
        {"const": "value1", "title": "First Option"},
        {"const": "value2", "title": "Second Option"},
        {"const": "value3", "title": "Third Option"}
      ]
    },
    "legacyEnum": {
      "type": "string", "enum": ["opt1", "opt2", "opt3"],
      "enumNames": ["Option One", "Option Two", "Option Three"]
    },
    "untitledMulti": {
      "type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}
    },
    "titledMulti": {
      "type": "array",
      "items": {
        "anyOf": [
          {"const": "value1", "title": "First Choice"},
          {"const": "value2", "title": "Second Choice"},
          {"const": "value3", "title": "Third Choice"}
        ]
      }
    }
  },
  "required": []
})";

// Asks once, with a state: by the second call, both have come back.
awaitable<CallToolResult> keep_state(Call& call, Nothing) {
  mcp::InputResponses responses;
  if (call.resumed()) {
    responses = call.resumed()->responses;
  } else {
    mcp::InputRequests requests;
    requests["confirm"] = question("Please confirm", "ok", "boolean");
    std::optional<std::string> state = "confirming";
    responses = co_await call.ask(std::move(requests), std::move(state), kLimit);
  }
  CallToolResult result = told(responses);
  std::string state = call.resumed() ? call.resumed()->state : "";
  if (state == "confirming") result.content.push_back(mcp::text_content("state-ok"));
  co_return result;
}

awaitable<CallToolResult> ask_all_kinds(Call& call, Nothing) {
  if (call.resumed()) co_return told(call.resumed()->responses);
  mcp::InputRequests requests;
  requests["user_name"] = question("What is your name?", "name", "string");
  requests["greeting"] = sample("Generate a greeting");
  requests["client_roots"] = mcp::list_roots();
  std::optional<std::string> state = "asked";
  mcp::InputResponses responses = co_await call.ask(std::move(requests), std::move(state), kLimit);
  co_return told(responses);
}

awaitable<CallToolResult> ask_in_rounds(Call& call, Nothing) {
  std::string round = call.resumed() ? call.resumed()->state : "0";
  if (round == "2") co_return told(call.resumed()->responses);
  mcp::InputRequests requests;
  if (round == "0")
    requests["step1"] = question("Step 1: What is your name?", "name", "string");
  else
    requests["step2"] = question("Step 2: What is your favorite color?", "color", "string");
  std::optional<std::string> next = round == "0" ? "1" : "2";
  mcp::InputResponses responses = co_await call.ask(std::move(requests), std::move(next), kLimit);
  co_return told(responses);
}

awaitable<CallToolResult> ask_what_is_served(Call& call, Nothing) {
  mcp::InputRequests requests;
  if (call.serves("sampling/createMessage")) requests["greeting"] = sample("Generate a greeting");
  if (call.can_ask()) requests["user_name"] = question("What is your name?", "name", "string");
  mcp::InputResponses responses = co_await call.ask(std::move(requests), kNoState, kLimit);
  co_return told(responses);
}

}  // namespace

std::vector<mcp::Tool> asking_tools() {
  std::vector<mcp::Tool> tools;
  auto asks = [&tools](const char* name, const char* key, mcp::InputRequest request) {
    tools.push_back(asks_one(name, key, std::move(request)));
  };
  auto add = [&tools](const char* name, auto f) {
    tools.push_back(tool<Nothing>(name, "Asks the client.", "{}", f));
  };
  tools.push_back(tool<Prompt>(
      "test_sampling", "Asks the client's model.", R"({"prompt":{"type":"string"}})",
      [](Call& call, Prompt args) { return ask_one(call, "answer", sample(args.prompt)); }));
  tools.push_back(tool<Message>(
      "test_elicitation", "Asks the user.", R"({"message":{"type":"string"}})",
      [](Call& call, Message args) { return ask_one(call, "answer", form(args.message, kUser)); }));
  asks("test_elicitation_sep1034_defaults", "answer", form("Please check these", kDefaults));
  asks("test_elicitation_sep1330_enums", "answer", form("Please choose", kEnums));
  asks("test_missing_capability", "answer", sample("Hello"));
  asks("test_streaming_elicitation", "answer", form("Who are you?", kUser));
  asks("test_input_required_result_elicitation", "user_name",
       question("What is your name?", "name", "string"));
  asks("test_input_required_result_sampling", "capital_question",
       sample("What is the capital of France?"));
  asks("test_input_required_result_list_roots", "client_roots", mcp::list_roots());
  add("test_input_required_result_request_state", keep_state);
  add("test_input_required_result_tampered_state", keep_state);
  add("test_input_required_result_multiple_inputs", ask_all_kinds);
  add("test_input_required_result_multi_round", ask_in_rounds);
  add("test_input_required_result_capabilities", ask_what_is_served);
  return tools;
}

mcp::InputRequest question(std::string message, const char* field, const char* type) {
  json::object property, properties;
  property["type"] = type;
  properties[field] = std::move(property);
  json::array required;
  required.emplace_back(field);
  mcp::ElicitParams params;
  params.message = std::move(message);
  params.requestedSchema["type"] = "object";
  params.requestedSchema["properties"] = std::move(properties);
  params.requestedSchema["required"] = std::move(required);
  return mcp::elicitation(params);
}

}  // namespace conformance
