// Mutated messages: the server stays alive, answers each request exactly once, and keeps nothing.
// PYKEEP_FUZZ_LINES says how many; the sequence is the same on every run.

#include <doctest/doctest.h>
#include <malloc.h>
#include <spdlog/spdlog.h>

#include <cstdlib>
#include <random>

#include "mcp/envelope.hpp"
#include "tests/mcp/conversation.hpp"

namespace {

constexpr int kLines = 100'000;
#ifdef PYKEEP_SANITIZED
constexpr bool kMeasurable = false;  // the sanitizer keeps freed memory
#else
constexpr bool kMeasurable = true;
#endif

std::vector<std::string> corpus() {
  std::vector<std::string> out = {
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{"elicitation":{}},"clientInfo":{"name":"x","version":"1"}}})",
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}})",
      R"({"jsonrpc":"2.0","method":"notifications/initialized"})",
      R"({"jsonrpc":"2.0","id":2,"method":"ping"})",
      R"({"jsonrpc":"2.0","id":"s","method":"tools/list","params":{"cursor":""}})",
      R"({"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"echo","arguments":{"text":"ü","times":2}}})",
      R"({"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"advance","_meta":{"progressToken":7}}})",
      R"({"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"wait"}})",
      R"({"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"ask","arguments":{"text":"?"}}})",
      R"({"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"crash","arguments":null}})",
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}})",
      R"({"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"name":"x"}}})",
      R"({"jsonrpc":"2.0","id":8,"method":"resources/read","params":{"uri":"test://here"}})",
      R"({"jsonrpc":"2.0","id":9,"method":"logging/setLevel","params":{"level":"debug"}})",
      R"({"jsonrpc":"2.0","id":13,"method":"resources/subscribe","params":{"uri":"test://here"}})",
      R"({"jsonrpc":"2.0","id":14,"method":"prompts/get","params":{"name":"say","arguments":{"what":"x"}}})",
      R"({"jsonrpc":"2.0","id":15,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"say"},"argument":{"name":"what","value":"x"}}})",
      R"([{"jsonrpc":"2.0","id":10,"method":"ping"},{"jsonrpc":"2.0","id":11,"method":"tools/list"}])",
  };
  std::string head = R"({"jsonrpc":"2.0","id":12,"method":)";
  out.push_back(head + R"("server/discover","params":)" + modern() + "}");
  out.push_back(head + R"("tools/call","params":)" +
                modern(R"("name":"chat")", "{}",
                       R"("io.modelcontextprotocol/logLevel":"info","progressToken":"p")") +
                "}");
  std::string ask = R"("name":"ask","arguments":{"text":"Who?"})";
  out.push_back(head + R"("tools/call","params":)" + modern(ask, R"({"elicitation":{}})") + "}");
  out.push_back(head + R"("tools/call","params":)" +
                modern(ask + R"(,"requestState":"00","inputResponses":{"answer":{}})",
                       R"({"elicitation":{}})") +
                "}");
  std::string wanted = R"({"toolsListChanged":true,"resourceSubscriptions":["test://here","b"]})";
  out.push_back(head + R"("subscriptions/listen","params":)" +
                modern(R"("notifications":)" + wanted) + "}");
  return out;
}

mcp::awaitable<mcp::GetPromptResult> say(mcp::Call&, const mcp::Prompt::Arguments& arguments) {
  mcp::GetPromptResult result;
  result.description = arguments.at("what");
  co_return result;
}

mcp::awaitable<std::vector<std::string>> echo(mcp::Call&, const mcp::CompleteParams& params) {
  std::vector<std::string> values(1, params.argument.value);
  co_return values;
}

mcp::Offer everything(mcp::Hub& hub) {
  mcp::Prompt prompt;
  prompt.info.name = "say";
  mcp::PromptArgument what;
  what.name = "what";
  what.required = true;
  prompt.info.arguments.push_back(what);
  prompt.get = say;
  mcp::Offer offer;
  offer.prompts.push_back(std::move(prompt));
  offer.complete = echo;
  offer.hub = &hub;
  offer.lists_change = {mcp::List::tools, mcp::List::resources};
  return offer;
}

class Mutator {
 public:
  explicit Mutator(unsigned seed = 20261129) : random_(seed) {}

  std::string next() {
    std::string text = corpus_[below(corpus_.size())];
    for (std::size_t n = below(4); n > 0; --n) mutate(text);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) { return limit ? random_() % limit : 0; }

  void mutate(std::string& text) {
    static const char* const kPieces[] = {"null",
                                          "{}",
                                          "[]",
                                          "\"\"",
                                          "1e999",
                                          "-1",
                                          "true",
                                          ",",
                                          "\"",
                                          ":",
                                          "\\u0000",
                                          "\\ud800",
                                          "99999999999999999999",
                                          "\"_meta\":{}",
                                          "[[[[",
                                          "1.5"};
    std::size_t at = below(text.size());
    switch (below(6)) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(below(256));
        break;
      case 1:
        text.erase(at, 1 + below(8));
        break;
      case 2:
        text.insert(at, kPieces[below(std::size(kPieces))]);
        break;
      case 3:
        text.insert(at, text.substr(below(text.size()), below(40)));
        break;
      case 4:
        replace_value(text, kPieces[below(std::size(kPieces))]);
        break;
      case 5:
        if (!text.empty()) text[at] ^= static_cast<char>(1 << below(8));
        break;
    }
  }

  // Keeps the text valid more often than not: what follows a colon goes up to the next delimiter.
  void replace_value(std::string& text, const char* value) {
    std::size_t colon = text.find(':', below(text.size()));
    if (colon == std::string::npos) return;
    std::size_t end = text.find_first_of(",}", colon);
    if (end != std::string::npos) text.replace(colon + 1, end - colon - 1, value);
  }

  std::mt19937 random_;
  std::vector<std::string> corpus_ = corpus();
};

// The id of a message that has to be answered; null otherwise.
json::value awaited_id(const json::value& message) {
  const json::object* object = message.if_object();
  if (!object || mcp::kind_of(*object) == mcp::Kind::notification ||
      mcp::kind_of(*object) == mcp::Kind::response)
    return nullptr;
  return mcp::readable_id(*object);
}

bool is_answer(const json::value& message, const json::value& id) {
  const json::object& fields = message.as_object();
  return !fields.contains("method") && fields.contains("id") && fields.at("id") == id &&
         fields.contains("result") != fields.contains("error");
}

int lines_wished() {
  const char* wished = std::getenv("PYKEEP_FUZZ_LINES");
  return wished ? std::atoi(wished) : kLines;
}

// The crashing tool is called often.
struct QuietLog {
  spdlog::level::level_enum before = spdlog::get_level();
  QuietLog() { spdlog::set_level(spdlog::level::off); }
  ~QuietLog() { spdlog::set_level(before); }
};

}  // namespace

TEST_CASE("each of many mutated requests is answered once, and nothing is kept") {
  QuietLog quiet;
  mcp::Hub hub;
  Conversation client(everything(hub));
  client.open_standing();
  client.tools.wait_time = client.tools.ask_limit = std::chrono::milliseconds(0);
  Mutator mutator;
  int lines = lines_wished();
  int parsed = 0, answered = 0, wrong = 0;
  std::size_t used_early = 0;
  for (int line = 0; line < lines && wrong < 5; ++line) {
    if (line == lines / 10) used_early = mallinfo2().uordblks;
    std::string text = mutator.next();
    boost::system::error_code malformed;
    json::value id = awaited_id(parse_message(text, malformed));
    if (malformed) continue;
    ++parsed;
    client.start(text);
    hub.list_changed(mcp::List::tools);
    hub.resource_updated("test://here");
    client.settle();
    client.server.end_subscriptions();
    REQUIRE(client.run());
    int answers = 0;
    for (const json::value& sent : client.out.messages)
      answers += sent.is_object() && is_answer(sent, id);
    answered += answers;
    if (!id.is_null() && answers != 1) {
      ++wrong;
      MESSAGE("answered " << answers << " times: " << text);
    }
    client.out.messages.clear();
  }
  CHECK(wrong == 0);
  CHECK(parsed > lines / 5);
  CHECK(answered > lines / 10);
  CHECK(client.peer.in_flight.empty());
  CHECK(client.peer.asked.empty());
  CHECK(client.result("tools/list").as_object().contains("tools"));
  if (kMeasurable) CHECK(mallinfo2().uordblks < used_early + (1 << 20));
}

TEST_CASE("mutated messages in bursts, with calls that run until they are cancelled") {
  QuietLog quiet;
  for (int burst = 0; burst < lines_wished() / 100; ++burst) {
    mcp::Hub hub;
    Conversation client(everything(hub));
    Mutator mutator(burst);
    for (int i = 0; i < 20; ++i) {
      std::string text = mutator.next();
      boost::system::error_code malformed;
      parse_message(text, malformed);
      if (!malformed) client.start(text);
    }
    hub.list_changed(mcp::List::tools);
    client.shut_down();
    REQUIRE(client.run());
    CHECK(client.tools.started == client.tools.cancelled);
    CHECK(client.peer.in_flight.empty());
    CHECK(client.peer.asked.empty());
  }
}
