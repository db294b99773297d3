// run_python, wait_execution and interrupt_execution, over a backend that runs no Python.

#include <doctest/doctest.h>

#include "tests/tools/fake_backend.hpp"

namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

template <class T>
json::object with(json::object arguments, const char* name, const T& value) {
  arguments[name] = json::value(value);
  return arguments;
}

json::object code(std::string text) { return with(json::object(), "code", text); }

// Returns `running` (or `queued`) after a moment in which the cell can start.
json::object started(std::string text) { return with(code(std::move(text)), "wait", 0.03); }

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const json::object& meta_of(const mcp::CallToolResult& result) {
  return result._meta->at("io.pykeep/execution").as_object();
}

std::string execution_of(const mcp::CallToolResult& result) {
  return std::string(meta_of(result).at("execution").as_string());
}

std::string status_of(const mcp::CallToolResult& result) {
  return std::string(meta_of(result).at("status").as_string());
}

json::object execution(const mcp::CallToolResult& result) {
  return with({}, "execution", execution_of(result));
}

mcp::Answer accept(const char* value) {
  mcp::Answer answer;
  answer.action = mcp::Answer::Action::accept;
  answer.content["value"] = value;
  return answer;
}

}  // namespace

TEST_CASE("how a cell ends is how its result looks") {
  struct Row {
    const char* cell;
    bool is_error;
    const char* status;
    const char* text;
  };
  for (const Row& row : {Row{"ok", false, "ok", "(no output)"}, Row{"print hi", false, "ok", "hi"},
                         Row{"raise", true, "raised", "ValueError: as asked"},
                         Row{"die", true, "kernel_died", "the kernel died: SIGSEGV"}}) {
    CAPTURE(row.cell);
    fake::World world;
    auto result = world.call("run_python", code(row.cell));
    CHECK(result.isError.value_or(false) == row.is_error);
    CHECK(status_of(result) == row.status);
    CHECK(contains(fake::text_of(result), row.text));
  }
}

TEST_CASE("arguments are checked before anything runs") {
  struct Row {
    const char* arguments;
    const char* text;
  };
  fake::World world;
  for (const Row& row :
       {Row{R"({})", "arguments.code"}, Row{R"({"code":7})", "arguments.code: expected string"},
        Row{R"({"code":"ok","wait":-1})", "arguments.wait: expected seconds from 0 to 3600"},
        Row{R"({"code":"ok","wait":3601})", "arguments.wait: expected seconds from 0 to 3600"},
        Row{R"({"code":"ok","timeout":0})", "arguments.timeout: expected seconds from 1 to 86400"},
        Row{R"({"code":"ok","timeout":1e300})", "arguments.timeout: expected seconds from 1"},
        Row{R"({"code":"ok","lines":3})", "arguments.lines"}}) {
    CAPTURE(row.arguments);
    auto result = world.call("run_python", json::parse(row.arguments).as_object());
    CHECK(result.isError == true);
    CHECK(contains(fake::text_of(result), row.text));
  }
  CHECK(world.backend.cells.empty());
  // What models write for a number is taken as one.
  auto lenient = json::parse(R"({"code":"ok","wait":"3600","timeout":"1"})").as_object();
  CHECK(!world.call("run_python", lenient).isError.value_or(false));
}

TEST_CASE("a cell that outlasts `wait` goes on, and wait_execution gets its result") {
  fake::World world;
  auto first = world.call("run_python", with(started("sleep"), "timeout", 1));
  CHECK(!first.isError.value_or(false));
  CHECK(contains(fake::text_of(first),
                 "call wait_execution with execution=\"" + execution_of(first) + "\""));
  auto still = world.call("wait_execution", with(execution(first), "wait", 0.05));
  CHECK(status_of(still) == "running");
  auto last = world.call("wait_execution", execution(first));
  CHECK(status_of(last) == "timed_out");
  CHECK(last.isError == true);
  CHECK(execution_of(last) == execution_of(first));
  // It is remembered, and can be read again.
  CHECK(status_of(world.call("wait_execution", execution(first))) == "timed_out");
}

TEST_CASE("an execution that is not known, or another principal's, is explained") {
  fake::World world;
  auto mine = world.call("run_python", code("ok"));
  mcp::Peer eve;
  eve.principal = "eve";
  fake::Call call(eve);
  for (const char* tool : {"wait_execution", "interrupt_execution"}) {
    auto foreign = world.wait(world.call(call, tool, execution(mine)));
    auto unknown = world.call(tool, with({}, "execution", std::string(1'000'000, 'e')));
    for (const mcp::CallToolResult& result : {foreign, unknown}) {
      CHECK(result.isError == true);
      CHECK(contains(fake::text_of(result), "is unknown: its session was closed"));
      CHECK(fake::text_of(result).size() < 400);
    }
  }
}

TEST_CASE("cells of a session run one at a time, in the order they came") {
  fake::World world;
  auto sleeping = world.call("run_python", started("sleep"));
  std::vector<json::object> waiting;
  for (int i = 0; i < 16; ++i) {
    auto queued = world.call("run_python", started("print " + std::to_string(i)));
    CHECK(status_of(queued) == "queued");
    CHECK(contains(fake::text_of(queued), "queued behind execution " + execution_of(sleeping)));
    waiting.push_back(execution(queued));
  }
  auto refused = world.call("run_python", started("one too many"));
  CHECK(refused.isError == true);
  CHECK(contains(fake::text_of(refused), "Too many executions wait in this session (at most 16"));
  world.call("interrupt_execution", execution(sleeping));
  for (const json::object& which : waiting)
    CHECK(status_of(world.call("wait_execution", which)) == "ok");
  REQUIRE(world.backend.cells.size() == 17);
  for (int i = 0; i < 16; ++i)
    CHECK(world.backend.cells[static_cast<std::size_t>(i) + 1] == "print " + std::to_string(i));
}

TEST_CASE("a call that is cancelled stops its cell; one that was waiting never starts") {
  fake::World world;
  world.give_up_after(300ms, "run_python", code("sleep"));
  auto sleeping = world.call("run_python", started("sleep"));
  CHECK(world.backend.cells.size() == 2);  // the first one has made room
  world.give_up_after(300ms, "run_python", code("print never"));
  auto next = world.call("run_python", started("ok"));
  world.call("interrupt_execution", execution(sleeping));
  CHECK(status_of(world.call("wait_execution", execution(next))) == "ok");
  CHECK(world.backend.cells == std::vector<std::string>{"sleep", "sleep", "ok"});
}

TEST_CASE("a queued execution can be interrupted, and ends at once") {
  fake::World world;
  auto sleeping = world.call("run_python", started("sleep"));
  auto queued = world.call("run_python", started("print never"));
  auto interrupted = world.call("interrupt_execution", execution(queued));
  CHECK(status_of(interrupted) == "abandoned");
  CHECK(contains(fake::text_of(interrupted), "not run: it was cancelled while it waited"));
  CHECK(status_of(world.call("wait_execution", with(execution(sleeping), "wait", 0))) == "running");
}

TEST_CASE("what a session has to say is not lost with a call that was cancelled") {
  fake::World world;
  world.give_up_after(300ms, "run_python", code("sleep"));
  CHECK(contains(fake::text_of(world.call("run_python", code("ok"))), "New session "));
  CHECK(!contains(fake::text_of(world.call("run_python", code("ok"))), "New session "));
}

TEST_CASE("interrupt_execution") {
  fake::World world;
  auto idle = world.call("interrupt_execution", {});
  CHECK(contains(fake::text_of(idle), "Nothing runs in session "));
  CHECK(contains(fake::text_of(idle), "kernel is not running"));
  SUBCASE("stops what runs in the session, and is no error") {
    auto running = world.call("run_python", started("sleep"));
    auto result = world.call("interrupt_execution", {});
    CHECK(!result.isError.value_or(false));
    CHECK(status_of(result) == "interrupted");
    CHECK(execution_of(result) == execution_of(running));
    CHECK(contains(fake::text_of(world.call("interrupt_execution", {})), "variables are kept"));
  }
  SUBCASE("asks the user nothing when the cell waits for input") {
    fake::Call call(world.peer);
    call.answer_value = accept("42");
    world.call("run_python", started("ask Name?"));
    world.wait(world.call(call, "interrupt_execution", {}));
    CHECK(call.questions.empty());
  }
  SUBCASE("with restart, ends the kernel and what waits; the next call says so") {
    world.call("run_python", started("sleep"));
    auto queued = world.call("run_python", started("print never"));
    auto result = world.call("interrupt_execution", with({}, "restart", true));
    CHECK(contains(fake::text_of(result), "was stopped. Its variables are gone"));
    CHECK(status_of(world.call("wait_execution", execution(queued))) == "abandoned");
    CHECK(world.backend.sandboxes.empty());
    CHECK(contains(fake::text_of(world.call("run_python", code("ok"))),
                   "A new kernel was started: the last one was stopped on request."));
    CHECK(world.backend.cells == std::vector<std::string>{"sleep", "ok"});
  }
}

TEST_CASE("after its death, the next call gets a new kernel and is told why, once") {
  fake::World world;
  SUBCASE("in a cell") {
    world.call("run_python", code("die"));
    CHECK(contains(fake::text_of(world.call("run_python", code("ok"))),
                   "A new kernel was started: the last one died: SIGSEGV (segmentation fault). "
                   "Variables from before are gone; files in /workspace are kept."));
  }
  SUBCASE("between two cells") {
    world.call("run_python", code("ok"));
    world.backend.sandboxes.front()->die();
    CHECK(contains(fake::text_of(world.call("run_python", code("ok"))),
                   "A new kernel was started: the last one ended between two executions."));
  }
  CHECK(fake::text_of(world.call("run_python", code("ok"))) == "(no output)");
  CHECK(world.backend.starts == 2);
}

TEST_CASE("a sandbox that does not start says why, and the next call tries again") {
  fake::World world;
  world.backend.refusal = "bubblewrap is not installed: apt-get install bubblewrap";
  auto refused = world.call("run_python", code("ok"));
  CHECK(refused.isError == true);
  CHECK(fake::text_of(refused) ==
        "[not run: bubblewrap is not installed: apt-get install bubblewrap]");
  world.backend.refusal.clear();
  auto result = world.call("run_python", code("ok"));
  CHECK(!result.isError.value_or(false));
  CHECK(contains(fake::text_of(result), "New session "));
}

TEST_CASE("a cell's question goes to the user of a client that can be asked") {
  fake::World world;
  fake::Call call(world.peer);
  SUBCASE("accepted") {
    call.answer_value = accept("42");
    auto result = world.wait(world.call(call, "run_python", code("ask What is it?")));
    CHECK(call.questions ==
          std::vector<std::string>{"The Python code asks for input: What is it?"});
    CHECK(contains(fake::text_of(result), "answer: 42"));
  }
  SUBCASE("declined") {
    call.answer_value.emplace();
    call.answer_value->action = mcp::Answer::Action::decline;
    auto result = world.wait(world.call(call, "run_python", code("ask What is it?")));
    CHECK(contains(fake::text_of(result), "answer: none"));
  }
  SUBCASE("answered with nonsense") {
    call.answer_value = accept("42");
    call.answer_value->content["value"] = 42;
    auto result = world.wait(world.call(call, "run_python", code("ask What is it?")));
    CHECK(contains(fake::text_of(result), "answer: none"));
  }
  SUBCASE("nobody can be asked") {
    auto result = world.wait(world.call(call, "run_python", code("ask What is it?")));
    CHECK(contains(fake::text_of(result), "answer: none"));
  }
}

TEST_CASE("a question without an answer ends with `wait`; wait_execution asks it again") {
  fake::World world;
  fake::Call silent(world.peer), call(world.peer);
  silent.answer_value = accept("late");
  silent.answers_after = 10s;
  auto arguments = with(code("ask Name?"), "wait", 0.1);
  auto first = world.wait(world.call(silent, "run_python", arguments));
  CHECK(status_of(first) == "waiting_input");
  CHECK(silent.questions.size() == 1);
  call.answer_value = accept("Ada");
  auto last = world.wait(world.call(call, "wait_execution", execution(first)));
  CHECK(call.questions.size() == 1);
  CHECK(contains(fake::text_of(last), "answer: Ada"));
}

TEST_CASE("a modern client gets the question as its result, and calls again with the answer") {
  fake::World world;
  fake::Call call(world.peer), retry(world.peer);
  call.answer_value = retry.answer_value = mcp::Answer();
  call.is_modern = retry.is_modern = true;
  std::string state;
  try {
    world.wait(world.call(call, "run_python", code("ask Name?")));
  } catch (const mcp::InputRequired& question) {
    state = question.state.value_or("");
    CHECK(question.requests.at(mcp::kAnswerKey).params.at("message") ==
          "The Python code asks for input: Name?");
  }
  REQUIRE(!state.empty());
  CHECK(world.backend.cells.size() == 1);  // the cell waits
  retry.resumed_value.emplace();
  retry.resumed_value->state = state;
  retry.resumed_value->answer = accept("Ada");
  auto result = world.wait(world.call(retry, "run_python", code("ask Name?")));
  CHECK(contains(fake::text_of(result), "answer: Ada"));
  CHECK(world.backend.cells.size() == 1);  // and was not run again
}

TEST_CASE("progress goes to who wants it, with the last line printed") {
  fake::World world;
  fake::Call call(world.peer);
  call.wants_progress_value = true;
  auto arguments = with(code("talk"), "wait", 1.5);
  world.wait(world.call(call, "run_python", arguments));
  REQUIRE(call.progress_made.size() == 1);
  CHECK(call.progress_made[0].first >= 1.0);
  CHECK(call.progress_made[0].second == "running, 1 s: step");
}
