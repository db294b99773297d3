#include "tests/conformance/fixtures.hpp"

namespace conformance {

namespace json = boost::json;
using mcp::awaitable;
using mcp::Call;
using mcp::CallToolResult;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kPause{50};

awaitable<CallToolResult> simple_text(Call&, Nothing) {
  co_return text_result("This is a simple text response for testing.");
}

awaitable<CallToolResult> image(Call&, Nothing) {
  CallToolResult result;
  result.content.push_back(mcp::image_content(kPng, "image/png"));
  co_return result;
}

awaitable<CallToolResult> audio(Call&, Nothing) {
  CallToolResult result;
  result.content.push_back(mcp::audio_content(kWav, "audio/wav"));
  co_return result;
}

awaitable<CallToolResult> embedded_resource(Call&, Nothing) {
  CallToolResult result;
  auto contents = text_resource("test://embedded-resource", "This is an embedded resource.");
  result.content.push_back(mcp::resource_content(std::move(contents)));
  co_return result;
}

awaitable<CallToolResult> several_kinds(Call&, Nothing) {
  CallToolResult result = text_result("Several kinds of content:");
  result.content.push_back(mcp::image_content(kPng, "image/png"));
  auto contents = text_resource("test://mixed-content-resource", "A resource among others.");
  result.content.push_back(mcp::resource_content(std::move(contents)));
  co_return result;
}

awaitable<CallToolResult> log_lines(Call& call, Nothing) {
  for (const char* line : {"Tool execution started", "Tool processing data", "Tool done"}) {
    call.log(mcp::LogLevel::info, line);
    co_await async::sleep_for(kPause);
  }
  co_return text_result("Logged three lines.");
}

awaitable<CallToolResult> error(Call&, Nothing) {
  throw mcp::ToolError("This tool intentionally returns an error for testing");
  co_return CallToolResult();
}

awaitable<CallToolResult> progress(Call& call, Nothing) {
  for (int percent : {0, 50, 100}) {
    std::string message = std::to_string(percent) + " of 100";
    call.progress(percent, 100, std::move(message));
    co_await async::sleep_for(kPause);
  }
  co_return text_result("Done, with progress.");
}

// server-sse-polling: the result is to be fetched by another connection.
awaitable<CallToolResult> reconnection(Call& call, Nothing) {
  call.hang_up();
  co_await async::sleep_for(kPause);
  co_return text_result("Reconnected.");
}

struct Region {
  std::optional<std::string> region;
};
BOOST_DESCRIBE_STRUCT(Region, (), (region))

awaitable<CallToolResult> mirrored_argument(Call&, Region args) {
  co_return text_result("Region: " + args.region.value_or("none"));
}

struct Person {
  std::optional<std::string> name, contactMethod, phone, email;
  std::optional<json::object> address;
};
BOOST_DESCRIBE_STRUCT(Person, (), (name, contactMethod, phone, email, address))

awaitable<CallToolResult> person(Call&, Person args) {
  co_return text_result("Name: " + args.name.value_or("none"));
}

constexpr const char* kPersonSchema = R"({
  "$schema": "https://json-schema.org/draft/2020-12/schema",
  "type": "object",
  "$defs": {
    "address": {
      "$anchor": "addressDef",
      "type": "object",
      "properties": {"street": {"type": "string"}, "city": {"type": "string"}}
    }
  },
  "properties": {
    "name": {"type": "string"},
    "address": {"$ref": "#/$defs/address"},
    "contactMethod": {"type": "string", "enum": ["phone", "email"]},
    "phone": {"type": "string"},
    "email": {"type": "string"}
  },
  "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
  "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
  "then": {"required": ["phone"]},
  "else": {"required": ["email"]},
  "additionalProperties": false
})";

}  // namespace

std::vector<mcp::Tool> content_tools(mcp::Hub& hub) {
  auto change = [&hub](mcp::List list) {
    return [&hub, list](Call& call, Nothing none) {
      hub.list_changed(list);
      return simple_text(call, none);
    };
  };
  std::vector<mcp::Tool> tools;
  auto add = [&tools](const char* name, const char* description, auto f) {
    tools.push_back(tool<Nothing>(name, description, "{}", f));
  };
  add("test_simple_text", "Answers with a text.", simple_text);
  add("test_image_content", "Answers with an image.", image);
  add("test_audio_content", "Answers with a sound.", audio);
  add("test_embedded_resource", "Answers with a resource.", embedded_resource);
  add("test_multiple_content_types", "Answers with blocks of several kinds.", several_kinds);
  add("test_tool_with_logging", "Logs three lines while it runs.", log_lines);
  add("test_logging_tool", "Logs three lines, if that was asked for.", log_lines);
  add("test_error_handling", "Fails.", error);
  add("test_tool_with_progress", "Tells its progress.", progress);
  add("test_reconnection", "Lets the client come back for the result.", reconnection);
  add("test_trigger_tool_change", "Says that the tools have changed.", change(mcp::List::tools));
  add("test_trigger_prompt_change", "Says that the prompts have changed.",
      change(mcp::List::prompts));
  tools.push_back(tool<Region>("test_custom_header", "Has an argument that is mirrored.",
                               R"({"region":{"type":"string","x-mcp-header":"Region"}})",
                               mirrored_argument));
  tools.push_back(tool<Person>("json_schema_2020_12_tool", "Has a rich schema.", "{}", person));
  tools.back().info.inputSchema = json::parse(kPersonSchema).as_object();
  return tools;
}

CallToolResult text_result(std::string text) {
  CallToolResult result;
  result.content.push_back(mcp::text_content(std::move(text)));
  return result;
}

mcp::ResourceContents text_resource(std::string uri, std::string text) {
  mcp::ResourceContents contents;
  contents.uri = std::move(uri);
  contents.mimeType = "text/plain";
  contents.text = std::move(text);
  return contents;
}

}  // namespace conformance
