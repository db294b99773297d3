// What the headers of a request say, and whether its body says the same.

#include "transport/http/mcp_headers.hpp"

#include <doctest/doctest.h>

#include "transport/message_text.hpp"

namespace http = transport::http;

TEST_CASE("Accept: both forms, one of them, or none") {
  struct Row {
    const char* accept;  // null: absent
    bool json, events;
  };
  for (const Row& row : {
           Row{nullptr, true, true},
           Row{"application/json, text/event-stream", true, true},
           Row{"*/*", true, true},
           Row{"Application/JSON", true, false},
           Row{"text/event-stream", false, true},
           Row{"application/json;q=0.5,text/event-stream ; q=1", true, true},
           Row{"application/json, text/event-stream;q=0", true, false},
           Row{"text/event-stream; charset=utf-8; q=0.000", false, false},
           Row{"text/*", false, true},
           Row{"application/*, text/html", true, false},
           Row{"text/html", false, false},
           Row{",,;", false, false},
       }) {
    CAPTURE(row.accept);
    http::Request request;
    if (row.accept) request.headers.emplace("accept", row.accept);
    http::Accepts accepts = http::accepted(request);
    CHECK(accepts.json == row.json);
    CHECK(accepts.events == row.events);
  }
}

TEST_CASE("a header's value may be wrapped in base64") {
  struct Row {
    const char* value;
    std::optional<std::string> text;
  };
  for (const Row& row : {
           Row{"run_python", "run_python"},
           Row{" \trun_python ", "run_python"},
           Row{"=?base64?w7xiZXI=?=", "über"},
           Row{"=?base64?\?=", ""},
           Row{"=?base64?IHg=?=", " x"},
           Row{"=?BASE64?w7xiZXI=?=", "=?BASE64?w7xiZXI=?="},  // markers are lower-case
           Row{"=?base64?w7xiZXI?=", std::nullopt},            // not padded
           Row{"=?base64?w7xiZX!=?=", std::nullopt},
           Row{"=?base64?w7xiZXJ=?=", std::nullopt},  // bits left over
           Row{"über", std::nullopt},
           Row{"a\x01", std::nullopt},
       }) {
    CAPTURE(row.value);
    CHECK(http::decoded(row.value) == row.text);
  }
}

TEST_CASE("headers repeat what the body of a modern request says") {
  const std::string version = "2026-07-28";
  struct Row {
    const char* name;
    std::string message;
    std::vector<std::pair<const char*, const char*>> headers;
    const char* problem;  // null: none
  };
  const std::string call = R"({"id":1,"method":"tools/call","params":{"name":"run_python"}})";
  const std::string read = R"({"id":1,"method":"resources/read","params":{"uri":"a:b"}})";
  const std::string list = R"({"id":1,"method":"tools/list","params":{}})";
  const std::string nameless = R"({"id":1,"method":"tools/call","params":{"name":7}})";
  const Row rows[] = {
      {"all", call, {{"Mcp-Method", "tools/call"}, {"Mcp-Name", "run_python"}}, nullptr},
      {"other case", call, {{"mcp-method", "tools/call"}, {"MCP-NAME", "run_python"}}, nullptr},
      {"wrapped",
       call,
       {{"Mcp-Method", "tools/call"}, {"Mcp-Name", "=?base64?cnVuX3B5dGhvbg==?="}},
       nullptr},
      {"no method", call, {{"Mcp-Name", "run_python"}}, "Mcp-Method is missing"},
      {"values keep their case",
       list,
       {{"Mcp-Method", "Tools/List"}},
       "Mcp-Method is 'Tools/List'"},
      {"no name", call, {{"Mcp-Method", "tools/call"}}, "Mcp-Name is missing"},
      {"another name",
       call,
       {{"Mcp-Method", "tools/call"}, {"Mcp-Name", "other"}},
       "Mcp-Name is 'other'"},
      {"broken base64",
       call,
       {{"Mcp-Method", "tools/call"}, {"Mcp-Name", "=?base64?%?="}},
       "cannot be read"},
      {"uri", read, {{"Mcp-Method", "resources/read"}, {"Mcp-Name", "a:b"}}, nullptr},
      {"nothing to name", list, {{"Mcp-Method", "tools/list"}}, nullptr},
      {"a name the method refuses itself", nameless, {{"Mcp-Method", "tools/call"}}, nullptr},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    http::Request request;
    request.headers.emplace("MCP-Protocol-Version", version);
    for (const auto& [name, value] : row.headers) request.headers.emplace(name, value);
    auto message = transport::parse_message(row.message);
    auto problem = http::header_mismatch(request, message->as_object(), {});
    CHECK(problem.has_value() == (row.problem != nullptr));
    if (problem && row.problem) CHECK(problem->find(row.problem) != std::string::npos);
    request.headers.erase("MCP-Protocol-Version");
    CHECK(http::header_mismatch(request, message->as_object(), {}));
  }
}

TEST_CASE("mirrored arguments: numbers by value, absent ones without a header") {
  struct Row {
    const char* name;
    std::optional<boost::json::value> value;
    const char* header;  // null: absent
    bool same;
  };
  const Row rows[] = {
      {"text", boost::json::value("west"), "west", true},
      {"text, wrapped", boost::json::value("über"), "=?base64?w7xiZXI=?=", true},
      {"another text", boost::json::value("west"), "east", false},
      {"integer", boost::json::value(42), "42", true},
      {"integer as a fraction", boost::json::value(42), "42.0", true},
      {"another integer", boost::json::value(42), "43", false},
      {"integer with something", boost::json::value(42), "42x", false},
      {"flag", boost::json::value(true), "true", true},
      {"flag, other case", boost::json::value(true), "True", false},
      {"missing header", boost::json::value("west"), nullptr, false},
      {"absent argument", std::nullopt, nullptr, true},
      {"absent argument with a header", std::nullopt, "west", false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    http::Request request;
    request.headers.emplace("MCP-Protocol-Version", "2026-07-28");
    request.headers.emplace("Mcp-Method", "tools/call");
    request.headers.emplace("Mcp-Name", "t");
    if (row.header) request.headers.emplace("Mcp-Param-Region", row.header);
    auto message =
        transport::parse_message(R"({"id":1,"method":"tools/call","params":{"name":"t"}})");
    std::vector<mcp::MirroredArgument> mirrored(1);
    mirrored[0].header = "Region";
    mirrored[0].value = row.value;
    CHECK(http::header_mismatch(request, message->as_object(), mirrored).has_value() != row.same);
  }
}
