// The runner must be able to fail: what a pattern takes and what it does not, and the same of
// schemas.

#include <doctest/doctest.h>

#include "tests/transcripts/runner/conformance.hpp"
#include "tests/transcripts/runner/pattern.hpp"

namespace json = boost::json;

TEST_CASE("patterns") {
  struct Row {
    const char* pattern;
    const char* got;
    bool same;
  };
  for (const Row& row : {
           Row{R"({"a":1,"b":2})", R"({"b":2,"a":1})", true},
           Row{R"({"a":1})", R"({"a":1,"b":2})", false},
           Row{R"({"a":1,"b":2})", R"({"a":1})", false},
           Row{R"({"a":1,"...":""})", R"({"a":1,"b":2})", true},
           Row{R"({"a":1,"...":""})", R"({"a":2,"b":2})", false},
           Row{R"({"id":1})", R"({"id":"1"})", false},
           Row{R"([1,"..."])", R"([1,2,3])", true},
           Row{R"(["...",3])", R"([1,2,3])", true},
           Row{R"(["...",2])", R"([1,2,3])", false},
           Row{R"([1,"...",3])", R"([1])", false},
           Row{R"("{{*}}")", R"({"any":"thing"})", true},
           Row{R"("a{{*}}c")", R"("abbbc")", true},
           Row{R"("a{{*}}c")", R"("abbbd")", false},
           Row{R"(["{{x}}","{{x}}"])", R"([1,1])", true},
           Row{R"(["{{x}}","{{x}}"])", R"([1,2])", false},
           Row{R"(["{{x}}","again {{x}}."])", R"(["a","again a."])", true},
           Row{R"(["is {{x}}.","{{x}}"])", R"(["is b.c.","b.c"])", true},
       }) {
    CAPTURE(row.pattern);
    CAPTURE(row.got);
    transcripts::Captures captures;
    auto problem =
        transcripts::difference(json::parse(row.pattern), json::parse(row.got), captures);
    CHECK(!problem == row.same);
  }
}

TEST_CASE("captured values are filled in as JSON where quoted, as text elsewhere") {
  transcripts::Captures captures{{"n", 7}, {"s", "a\"b"}};
  CHECK(transcripts::filled_in(R"({"id":"{{n}}","t":"<{{s}}> {{n}} {{other}}"})", captures) ==
        R"({"id":7,"t":"<a\"b> 7 {{other}}"})");
}

TEST_CASE("what breaks the schema of its revision is told") {
  struct Row {
    const char* sent;
    const char* got;
    bool sound;
  };
  const char* call = R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}})";
  const char* modern_call =
      R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}})";
  for (
      const Row& row : {
          Row{call, R"({"jsonrpc":"2.0","id":1,"result":{"content":[]}})", true},
          Row{call, R"({"jsonrpc":"2.0","id":1,"result":{}})", false},
          Row{call, R"({"jsonrpc":"2.0","id":"1","result":{"content":[]}})", false},
          Row{call, R"({"id":1,"result":{"content":[]}})", false},
          Row{call, R"({"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"image"}]}})", false},
          Row{call, R"({"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"y"}})", false},
          Row{call, R"([{"jsonrpc":"2.0","id":1,"result":{"content":[]}}])", false},
          Row{call, R"({"jsonrpc":"2.0","method":"notifications/unheard","params":{}})", false},
          Row{call,
              R"({"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}})",
              false},
          Row{modern_call, R"({"jsonrpc":"2.0","id":1,"result":{"content":[]}})", false},
          Row{modern_call,
              R"({"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}})", true},
          Row{modern_call, R"({"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{}})",
              false},
      }) {
    CAPTURE(row.got);
    transcripts::Conformance conformance("tests/mcp-schemas");
    conformance.client_sent(row.sent);
    auto problem = conformance.server_sent(json::parse(row.got));
    CHECK(!problem == row.sound);
  }
}
