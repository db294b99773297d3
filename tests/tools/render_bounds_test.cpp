// What a sandbox displays decides neither the size nor the form of a result.

#include <doctest/doctest.h>

#include "schemas/codec.hpp"
#include "tests/tools/fake_backend.hpp"
#include "tools/render.hpp"
#include "tools/text.hpp"

namespace json = boost::json;

namespace {

struct Shown {
  fake::World world;
  std::shared_ptr<tools::Session> session;
  tools::Run run;

  Shown() {
    tools::Sessions::Wish wish;
    session = world.wait(world.sessions.create("local", wish));
    auto executor = world.io.get_executor();
    run.execution = std::make_shared<sandbox::Execution>(executor, "e-1", "code");
    run.execution->status = sandbox::Execution::Status::ok;
  }
  void show(sandbox::Display display) {
    run.execution->outputs.push_back(sandbox::Output{std::move(display)});
  }
  mcp::CallToolResult result() { return tools::render(*session, run); }
};

}  // namespace

TEST_CASE("names of MIME types and files are bounded, and cut between characters") {
  Shown shown;
  std::string name;
  while (name.size() < 40'000) name += "字\"";
  for (int i = 0; i < 100; ++i) {
    sandbox::Display display;
    for (int k = 0; k < 30; ++k) {
      display.data[std::to_string(k) + name] = "";
      display.binary.push_back({std::to_string(k) + name, ""});
    }
    display.metadata["image"].emplace_object()["file"] = name;
    shown.show(std::move(display));
  }
  std::string text = json::serialize(schemas::encode(shown.result()));
  CHECK(text.size() < 400'000);
  CHECK(tools::valid_utf8(text) == text);
}

TEST_CASE("displays of which nothing can be shown leave a text all the same") {
  Shown shown;
  shown.show(sandbox::Display());
  CHECK(fake::text_of(shown.result()) == "(no output)");
}
