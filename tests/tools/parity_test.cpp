// What the model reads (schemas/<tool>.json) and what the tool reads (its Args struct) are the
// same.

#include <doctest/doctest.h>

#include <set>

#include "schemas/catalogue.hpp"
#include "tests/tools/fake_backend.hpp"
#include "tools/tools.hpp"

namespace json = boost::json;

TEST_CASE("every tool's arguments are those of its document") {
  fake::World world;
  for (const mcp::Tool& tool : world.tools()) {
    CAPTURE(tool.info.name);
    const json::object& schema = tool.info.inputSchema;
    CHECK(schema.at("type") == "object");
    CHECK(schema.at("additionalProperties") == false);
    const json::object& properties = schema.at("properties").as_object();
    CHECK(properties.size() == tool.arguments.size());
    std::set<std::string> required;
    if (const json::value* names = schema.if_contains("required"))
      for (const json::value& name : names->as_array()) required.emplace(name.as_string());
    for (const auto& argument : tool.arguments) {
      CAPTURE(argument.name);
      REQUIRE(properties.contains(argument.name));
      CHECK(properties.at(argument.name).at("type").as_string() == argument.type);
      CHECK(required.contains(argument.name) == argument.required);
    }
  }
}

TEST_CASE("rules of every tool") {
  fake::World world;
  std::size_t bytes = 0;
  std::set<std::string> names;
  for (const mcp::Tool& tool : world.tools()) {
    CAPTURE(tool.info.name);
    const json::object& document = schemas::document(tool.info.name);
    CHECK(document.at("name").as_string() == tool.info.name);
    CHECK(names.insert(tool.info.name).second);
    CHECK(tool.info.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos);
    CHECK(tool.info.name.size() <= 40);
    CHECK(tool.info.title.has_value());
    CHECK(tool.info.description.size() > 10);
    REQUIRE(tool.info.annotations.has_value());
    CHECK(tool.info.annotations->contains("readOnlyHint"));
    CHECK(tool.info.annotations->contains("destructiveHint"));
    // Clients fall over these: references, unions, arrays without items.
    std::string text = json::serialize(tool.info.inputSchema);
    for (const char* word :
         {"$ref", "oneOf", "anyOf", "allOf", "\"const\"", "\"null\"", "\"array\""})
      CHECK_MESSAGE(text.find(word) == std::string::npos, word);
    bytes += json::serialize(document).size();
  }
  CHECK(bytes <= 5'500);  // about 1,400 tokens: every conversation pays for them
}
