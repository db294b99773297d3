#include "tests/support/fixture_tools.hpp"

#include <stdexcept>

namespace {

namespace json = boost::json;
using mcp::awaitable;

mcp::CallToolResult text_result(std::string text) {
  mcp::CallToolResult result;
  result.content.push_back(mcp::text_content(std::move(text)));
  return result;
}

template <class Args, class F>
mcp::Tool tool(std::string name, const char* properties, F f) {
  mcp::Tool tool;
  tool.info.name = std::move(name);
  tool.info.description = "A tool for tests.";
  tool.info.inputSchema["type"] = "object";
  tool.info.inputSchema["properties"] = json::parse(properties);
  tool.run = mcp::with_args<Args>(f);
  return tool;
}

struct Echo {
  std::string text;
};
BOOST_DESCRIBE_STRUCT(Echo, (), (text))

awaitable<mcp::CallToolResult> echo(mcp::Call&, Echo args) { co_return text_result(args.text); }

struct Slow {
  int ms;
  std::optional<int> steps;
};
BOOST_DESCRIBE_STRUCT(Slow, (), (ms, steps))

awaitable<mcp::CallToolResult> slow(mcp::Call& call, Slow args) {
  int steps = args.steps.value_or(1);
  if (args.ms < 0 || steps < 1 || steps > 10'000)
    throw mcp::ToolError("time runs forward, in 1 to 10,000 steps");
  std::chrono::milliseconds pause(args.ms / steps);
  for (int step = 1; step <= steps; ++step) {
    co_await async::sleep_for(pause);
    call.progress(step, "step " + std::to_string(step));
  }
  co_return text_result("waited " + std::to_string(args.ms) + " ms");
}

constexpr std::size_t kMaxFlood = 16 << 20;

struct Flood {
  std::size_t bytes;
};
BOOST_DESCRIBE_STRUCT(Flood, (), (bytes))

awaitable<mcp::CallToolResult> flood(mcp::Call&, Flood args) {
  if (args.bytes > kMaxFlood) throw mcp::ToolError("at most 16 MiB");
  co_return text_result(std::string(args.bytes, 'x'));
}

struct Ask {
  std::string question;
};
BOOST_DESCRIBE_STRUCT(Ask, (), (question))

awaitable<mcp::CallToolResult> ask(mcp::Call& call, Ask args) {
  if (call.resumed()) {
    std::string name(call.resumed()->answer.content.at("name").as_string());
    co_return text_result("resumed from '" + call.resumed()->state + "' with " + name);
  }
  if (!call.can_ask()) throw mcp::ToolError("nobody can be asked");
  mcp::ElicitParams question;
  question.message = std::move(args.question);
  question.requestedSchema["type"] = "object";
  question.requestedSchema["properties"] = json::parse(R"({"name":{"type":"string"}})");
  std::chrono::milliseconds limit(5000);
  mcp::Answer answer = co_await call.ask(std::move(question), "asked", limit);
  if (answer.action != mcp::Answer::Action::accept) co_return text_result("no answer");
  co_return text_result("answered with " + std::string(answer.content.at("name").as_string()));
}

struct Nothing {};
BOOST_DESCRIBE_STRUCT(Nothing, (), ())

awaitable<mcp::CallToolResult> fail(mcp::Call&, Nothing) {
  throw mcp::ToolError("it did not work; nothing is lost; try something else");
  co_return mcp::CallToolResult();
}

awaitable<mcp::CallToolResult> break_down(mcp::Call&, Nothing) {
  throw std::logic_error("a defect");
  co_return mcp::CallToolResult();
}

}  // namespace

std::vector<mcp::Tool> fixture_tools() {
  std::vector<mcp::Tool> tools;
  tools.push_back(tool<Echo>("echo", R"({"text":{"type":"string"}})", echo));
  tools.push_back(
      tool<Slow>("slow", R"({"ms":{"type":"integer"},"steps":{"type":"integer"}})", slow));
  tools.push_back(tool<Flood>("flood", R"({"bytes":{"type":"integer"}})", flood));
  tools.push_back(tool<Ask>("ask", R"({"question":{"type":"string"}})", ask));
  tools.push_back(tool<Nothing>("fail", "{}", fail));
  tools.push_back(tool<Nothing>("break", "{}", break_down));
  return tools;
}

mcp::Server fixture_server() {
  mcp::Implementation self;
  self.name = "test-server";
  self.version = "1";
  return mcp::Server(self, "Tools for tests.", fixture_tools(), nullptr);
}
