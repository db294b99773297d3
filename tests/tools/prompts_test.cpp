#include "tools/prompts.hpp"

#include <doctest/doctest.h>

#include "tests/tools/fake_backend.hpp"

namespace {

mcp::CompleteParams completing(const char* type, const char* argument, const char* value) {
  mcp::CompleteParams params;
  params.ref.type = type;
  params.argument.name = argument;
  params.argument.value = value;
  return params;
}

std::string text_of(fake::World& world, const std::string& name,
                    const mcp::Prompt::Arguments& arguments) {
  fake::Call call(world.peer);
  for (const mcp::Prompt& prompt : tools::prompts())
    if (prompt.info.name == name)
      return world.wait(prompt.get(call, arguments)).messages.at(0).content.text.value();
  return "no such prompt";
}

}  // namespace

TEST_CASE("the instructions stay under 200 tokens, whatever the backend") {
  for (bool isolated : {true, false}) CHECK(tools::instructions(isolated).size() <= 800);
  CHECK(tools::instructions(true).find("network") != std::string::npos);
}

TEST_CASE("a prompt says what was asked, and nothing of what was not") {
  fake::World world;
  mcp::Prompt::Arguments file{{"file", "{}.csv"}};
  std::string text = text_of(world, "analyse_file", file);
  CHECK(text.starts_with("Analyse the file {}.csv with Python. If list_files"));
  CHECK(text.find("above all") == std::string::npos);
  file["question"] = "Why?";
  CHECK(text_of(world, "analyse_file", file).find("Answer this above all: Why?\n\n") !=
        std::string::npos);
  mcp::Prompt::Arguments chart{{"description", "sales by month"}};
  CHECK(
      text_of(world, "chart", chart).starts_with("Make this chart with Python: sales by month\n"));
}

TEST_CASE("arguments are completed with what the caller has, and with nobody else's") {
  fake::World world;
  boost::asio::thread_pool pool(1);
  world.backend.real_files = &pool;
  auto complete = tools::completer(world.sessions);
  fake::Call call(world.peer);
  auto file = completing("ref/prompt", "file", "sal");
  CHECK(world.wait(complete(call, file)).empty());
  CHECK(world.sessions.held() == 0);  // a look makes no session
  for (const char* name : {"sales.csv", "salt/a.csv", "other.csv"}) {
    boost::json::object arguments;
    arguments["name"] = name;
    arguments["text"] = "x";
    world.call("upload_file", std::move(arguments));
  }
  std::vector<std::string> expected{"sales.csv", "salt/a.csv"};
  CHECK(world.wait(complete(call, file)) == expected);
  auto session = completing("ref/resource", "session", "");
  CHECK(world.wait(complete(call, session)).size() == 1);
  mcp::Peer other;
  other.principal = "somebody else";
  fake::Call foreign(other);
  CHECK(world.wait(complete(foreign, file)).empty());
  CHECK(world.wait(complete(foreign, session)).empty());
}
