// The runner must be able to fail: what a pattern takes and what it does not, and the same of
// schemas.

#include <doctest/doctest.h>

#include "tests/transcripts/runner/conformance.hpp"
#include "tests/transcripts/runner/http_response.hpp"
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

TEST_CASE("a response is read in pieces of any size, and its messages as they come") {
  struct Row {
    std::string response;
    std::vector<std::string> messages;
  };
  std::string head = "HTTP/1.1 200 OK\r\nContent-Type: ";
  for (const Row& row : {
           Row{head + "application/json\r\nContent-Length: 2\r\n\r\n{}", {"{}"}},
           Row{"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", {}},
           Row{head + "text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "1a\r\nid: 1\ndata: \n\n: ping\n\ndata\r\n"
                      "1c\r\n: {\"a\":1}\n\nevent: message\nda\r\n"
                      "a\r\nta: {}\r\n\r\n\r\n0\r\n\r\n",
               {"{\"a\":1}", "{}"}},
       }) {
    for (std::size_t piece : {std::size_t{1}, std::size_t{7}, row.response.size()}) {
      CAPTURE(piece);
      transcripts::HttpResponse response;
      std::vector<std::string> got;
      for (std::size_t at = 0; at < row.response.size(); at += piece)
        for (std::string& message : response.take(std::string_view(row.response).substr(at, piece)))
          got.push_back(std::move(message));
      CHECK(response.complete());
      CHECK(got == row.messages);
    }
  }
}

TEST_CASE("what is not HTTP as it should be is told") {
  std::string ok = "HTTP/1.1 200 OK\r\n";
  for (const std::string& response : {
           std::string("HTTP/1.0 200 OK\r\n\r\n"),
           ok + "Content-Type: text/plain\r\n\r\n",
           ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
           ok + "Content-Length: 1\r\n\r\nxy",
           ok + "Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n",
           ok + "Content-Type: text/event-stream\r\nContent-Length: 10\r\n\r\nevent: odd",
       }) {
    CAPTURE(response);
    transcripts::HttpResponse reader;
    bool refused = false;
    try {
      reader.take(response);
      reader.take("\n");
      reader.end();
    } catch (const std::exception&) {
      refused = true;
    }
    CHECK(refused);
  }
  transcripts::HttpResponse half;
  half.take(ok + "Content-Length: 2\r\n\r\nx");
  CHECK_THROWS(half.end());
}
