#pragma once

#include <algorithm>
#include <boost/json.hpp>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "mcp/tool.hpp"

namespace json = boost::json;

inline mcp::CallToolResult said(std::string text) {
  mcp::CallToolResult result;
  result.content.push_back(mcp::text_content(std::move(text)));
  return result;
}

struct Text {
  std::string text;
  std::optional<int> times;
};
BOOST_DESCRIBE_STRUCT(Text, (), (text, times))

struct None {};
BOOST_DESCRIBE_STRUCT(None, (), ())

// Small tools that each do one thing a real one may do.
class FakeTools {
 public:
  int started = 0;    // calls of `wait` that began
  int cancelled = 0;  // ... and were cancelled
  std::chrono::milliseconds wait_time{600'000};
  std::chrono::milliseconds ask_limit{60'000};

  std::vector<mcp::Tool> all() {
    std::vector<mcp::Tool> tools;
    tools.push_back(make<Text>("echo", &FakeTools::echo));
    tools.push_back(make<None>("wait", &FakeTools::wait));
    tools.push_back(make<None>("refuse", &FakeTools::refuse));
    tools.push_back(make<None>("crash", &FakeTools::crash));
    tools.push_back(make<None>("advance", &FakeTools::advance));
    tools.push_back(make<None>("chat", &FakeTools::chat));
    tools.push_back(make<Text>("ask", &FakeTools::ask));
    tools.push_back(make<None>("defiant", &FakeTools::defiant));
    return tools;
  }

 private:
  using Result = mcp::awaitable<mcp::CallToolResult>;

  template <class Args>
  mcp::Tool make(const char* name, Result (FakeTools::*run)(mcp::Call&, Args)) {
    mcp::Tool tool;
    tool.info.name = name;
    tool.info.title = std::string("The tool ") + name;
    tool.info.description = "For tests";
    tool.info.inputSchema["type"] = "object";
    tool.info.annotations.emplace()["readOnlyHint"] = true;
    auto handler = [this, run](mcp::Call& call, Args args) {
      return (this->*run)(call, std::move(args));
    };
    tool.run = mcp::with_args<Args>(handler);
    return tool;
  }

  Result echo(mcp::Call&, Text args) {
    std::string text;
    for (int i = 0; i < args.times.value_or(1); ++i) text += args.text;
    co_return said(std::move(text));
  }

  // Until cancelled; far longer than a test takes.
  Result wait(mcp::Call&, None) {
    ++started;
    try {
      co_await async::sleep_for(wait_time);
    } catch (...) {
      ++cancelled;
      throw;
    }
    co_return said("waited");
  }

  // A call that keeps talking and answers although it was cancelled.
  Result defiant(mcp::Call& call, None) {
    try {
      co_await async::sleep_for(std::chrono::minutes(10));
    } catch (const boost::system::system_error&) {
    }
    call.progress(1, "still here");
    call.log(mcp::LogLevel::emergency, "still here");
    co_return said("done all the same");
  }

  Result refuse(mcp::Call&, None) {
    throw mcp::ToolError("No such session. Your sessions: none.");
    co_return said("");
  }

  Result crash(mcp::Call&, None) {
    throw std::runtime_error("secret detail");
    co_return said("");
  }

  Result advance(mcp::Call& call, None) {
    for (double value : {0.0, 1.0, 1.0, 0.5, 1.5, std::numeric_limits<double>::infinity(),
                         std::numeric_limits<double>::quiet_NaN(), 2.0})
      call.progress(value, "at " + std::to_string(value).substr(0, 3));
    co_return said("arrived");
  }

  Result chat(mcp::Call& call, None) {
    call.log(mcp::LogLevel::debug, "a debug line");
    call.log(mcp::LogLevel::warning, "a warning");
    call.log(mcp::LogLevel::error, "an error");
    co_return said("said");
  }

  // Asks the user; `times` is how often.
  Result ask(mcp::Call& call, Text args) {
    std::string state = call.resumed() ? call.resumed()->state : "";
    if (call.resumed()) state += describe(call.resumed()->answer) + ";";
    int asked = static_cast<int>(std::count(state.begin(), state.end(), ';'));
    while (asked++ < args.times.value_or(1)) {
      mcp::ElicitParams question;
      question.message = args.text;
      question.requestedSchema = json::parse(kSchema).as_object();
      mcp::Answer answer = co_await call.ask(std::move(question), state, ask_limit);
      state += describe(answer) + ";";
    }
    co_return said(state);
  }

  static std::string describe(const mcp::Answer& answer) {
    if (answer.action == mcp::Answer::Action::cancel) return "cancel";
    if (answer.action == mcp::Answer::Action::decline) return "decline";
    return "accept " + json::serialize(answer.content);
  }

  static constexpr const char* kSchema =
      R"({"type":"object","properties":{"name":{"type":"string"}}})";
};
