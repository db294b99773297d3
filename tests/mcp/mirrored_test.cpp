// Arguments that clients repeat as headers (2026-07-28, `x-mcp-header`).

#include <doctest/doctest.h>

#include "tests/mcp/conversation.hpp"

namespace {

mcp::awaitable<mcp::CallToolResult> nothing(mcp::Call&, None) { co_return mcp::CallToolResult(); }

mcp::Server with_schema(const std::string& properties) {
  mcp::ToolInfo info;
  info.name = "t";
  info.inputSchema["type"] = "object";
  info.inputSchema["properties"] = json::parse(properties);
  mcp::Offer offer;
  offer.tools.push_back(mcp::make_tool<None>(info, nothing));
  return mcp::Server({"pykeep", {}, "1"}, "", std::move(offer));
}

}  // namespace

TEST_CASE("annotations that clients would refuse are refused here") {
  struct Row {
    const char* properties;
    bool allowed;
  };
  for (
      const Row& row : {
          Row{R"({"a":{"type":"string"}})", true},
          Row{R"({"a":{"type":"string","x-mcp-header":"A"}})", true},
          Row{R"({"a":{"type":"integer","x-mcp-header":"A"},"b":{"type":"boolean","x-mcp-header":"b-1"}})",
              true},
          Row{R"({"o":{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"A"}}}})",
              true},
          Row{R"({"a":{"type":"number","x-mcp-header":"A"}})", false},
          Row{R"({"a":{"x-mcp-header":"A"}})", false},
          Row{R"({"a":{"type":"string","x-mcp-header":""}})", false},
          Row{R"({"a":{"type":"string","x-mcp-header":"A B"}})", false},
          Row{R"({"a":{"type":"string","x-mcp-header":"A:"}})", false},
          Row{R"({"a":{"type":"string","x-mcp-header":5}})", false},
          Row{R"({"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}})",
              false},
          Row{R"({"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}})", false},
          Row{R"({"a":{"oneOf":[{"type":"string","x-mcp-header":"A"}]}})", false},
      }) {
    CAPTURE(row.properties);
    if (row.allowed)
      CHECK_NOTHROW(with_schema(row.properties));
    else
      CHECK_THROWS_AS(with_schema(row.properties), std::invalid_argument);
  }
}

TEST_CASE("the arguments to be mirrored are found in a call") {
  mcp::Server server = with_schema(
      R"({"a":{"type":"string","x-mcp-header":"A"},
          "o":{"type":"object","properties":{"b":{"type":"integer","x-mcp-header":"B"}}}})");
  struct Row {
    const char* message;
    const char* mirrored;
  };
  for (const Row& row : {
           Row{R"({"method":"tools/call","params":{"name":"t","arguments":{"a":"x","o":{"b":5}}}})",
               R"(A="x" B=5 )"},
           Row{R"({"method":"tools/call","params":{"name":"t","arguments":{"a":null,"o":5}}})",
               "A B "},
           Row{R"({"method":"tools/call","params":{"name":"t","arguments":"{\"a\":\"x\"}"}})",
               R"(A="x" B )"},
           Row{R"({"method":"tools/call","params":{"name":"t"}})", "A B "},
           Row{R"({"method":"tools/call","params":{"name":"t","arguments":[]}})", ""},
           Row{R"({"method":"tools/call","params":{"name":"other"}})", ""},
           Row{R"({"method":"tools/call","params":5})", ""},
           Row{R"({"method":"tools/list","params":{"name":"t"}})", ""},
           Row{R"({"id":1,"result":{}})", ""},
       }) {
    CAPTURE(row.message);
    std::string text;
    for (const auto& one : server.mirrored_arguments(json::parse(row.message).as_object()))
      text += one.header + (one.value ? "=" + json::serialize(*one.value) : "") + " ";
    CHECK(text == row.mirrored);
  }
}
