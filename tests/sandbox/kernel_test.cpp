#include "sandbox/kernel.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>

#include "tests/sandbox/fake_kernel.hpp"

namespace sandbox {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;
using Status = Execution::Status;

std::string text_of(const std::deque<Output>& outputs) {
  std::string out;
  for (const Output& output : outputs)
    if (const auto* text = std::get_if<Text>(&output.what)) out += text->bytes;
  return out;
}

// The outputs as one line: text as it is, "[display 2]", "[error KeyboardInterrupt]", "[gap]".
std::string story(const std::deque<Output>& outputs) {
  std::string out;
  for (const Output& output : outputs) {
    if (const auto* text = std::get_if<Text>(&output.what)) out += text->bytes;
    if (const auto* shown = std::get_if<Display>(&output.what))
      out += "[display " + std::string(shown->data.at("text/plain").as_string()) + "]";
    if (const auto* error = std::get_if<PythonError>(&output.what))
      out += "[error " + error->name + "]";
    if (std::get_if<Gap>(&output.what)) out += "[gap]";
  }
  return out;
}

struct FakeSpill : Spill {
  awaitable<void> append(const Execution&, std::string bytes) override {
    text += bytes;
    co_return;
  }
  awaitable<std::string> finish(const Execution& execution) override {
    co_return "outputs/" + std::to_string(execution.number) + ".txt";
  }
  std::string text;
};

// A kernel that is ready, behind a fake channel.
struct Bench {
  Bench() { fake->ready(); }
  ~Bench() { run_to_end(io, kernel.close()); }

  // Runs the cell; `during` is what the kernel says once it has it.
  Execution& run(std::function<void()> during, std::chrono::milliseconds timeout = 10s) {
    during_ = std::move(during);
    fake->on_send = [this](const json::object& request) {
      if (request.at("op") == "execute") during_();
    };
    auto& execution = executions.emplace_back(io.get_executor(), "e", "code");
    execution.timeout = timeout;
    execution.can_ask = true;
    run_to_end(io, kernel.run(execution));
    return execution;
  }
  void starts() { says(R"({"ev":"started","id":N,"execution_count":7})"); }
  void ends() { says(R"({"ev":"done","id":N,"status":"ok","execution_count":7})"); }
  void raises(const std::string& name) {
    says(R"({"ev":"error","id":N,"name":")" + name + R"(","value":"","traceback":[]})");
    says(R"({"ev":"done","id":N,"status":"error","execution_count":7})");
  }
  void shows(const std::string& text) {
    says(R"({"ev":"display","id":N,"data":{"text/plain":")" + text + R"("}})");
  }
  // N stands for the number of the cell that was asked for last.
  void says(std::string header) {
    std::string id = json::serialize(fake->sent.back().at("id"));
    auto at = header.find("\"id\":N");
    if (at != header.npos) header.replace(at + 5, 1, id);
    fake->says(header);
  }

  boost::asio::io_context io{1};
  std::shared_ptr<FakeKernel> fake = std::make_shared<FakeKernel>(io);
  FakeSpill spill;
  OutputLimits limits{.head_bytes = 1000, .tail_bytes = 1000, .background_bytes = 1000};
  Kernel kernel{io.get_executor(), std::make_unique<FakeChannel>(fake), limits, &spill};
  std::deque<Execution> executions;
  std::function<void()> during_;
};

TEST_CASE("a cell runs, and its outputs stand in order") {
  Bench bench;
  run_to_end(bench.io, bench.kernel.ready(30s));
  CHECK(bench.kernel.greeting() == object(R"({"python":"3.11.2","ipython":"8.5.0"})"));
  Execution& execution = bench.run([&] {
    bench.starts();
    bench.fake->out("a");
    bench.shows("2");
    bench.fake->out("b");
    bench.fake->out("c");
    bench.ends();
  });
  CHECK(execution.status == Status::ok);
  CHECK(execution.kept);
  CHECK(execution.number == 7);
  CHECK(execution.bytes_out == 3);
  CHECK(story(execution.outputs) == "a[display 2]bc");
  CHECK(bench.fake->sent.front() ==
        object(R"({"op":"execute","id":1,"code":"code","can_ask":true})"));
}

TEST_CASE("a cell that raises") {
  Bench bench;
  Execution& execution = bench.run([&] { bench.raises("ValueError"); });
  CHECK(execution.status == Status::raised);
  CHECK(story(execution.outputs) == "[error ValueError]");
  Execution& silent = bench.run(
      [&] { bench.says(R"({"ev":"done","id":N,"status":"error","execution_count":1})"); });
  CHECK(silent.status == Status::raised);
  CHECK(std::holds_alternative<PythonError>(silent.outputs.back().what));
}

TEST_CASE("late messages of another cell are dropped") {
  Bench bench;
  bench.run([&] { bench.ends(); });
  Execution& execution = bench.run([&] {
    bench.fake->says(R"({"ev":"display","id":1,"data":{"text/plain":"late"}})");
    bench.fake->says(R"({"ev":"done","id":1,"status":"ok","execution_count":1})");
    bench.shows("mine");
    bench.ends();
  });
  CHECK(story(execution.outputs) == "[display mine]");
}

TEST_CASE("output between cells goes to the next one, as background and bounded") {
  Bench bench;
  bench.run([&] { bench.ends(); });
  for (int i = 0; i < 10'000; ++i) bench.fake->out("tick " + std::to_string(i) + "\n");
  bench.fake->err("last words");
  Execution& execution = bench.run([&] {
    bench.fake->out("mine");
    bench.ends();
  });
  CHECK(story(execution.outputs) == "mine");
  std::string background = text_of(execution.background);
  CHECK(background.starts_with("tick 0\n"));
  CHECK(background.ends_with("tick 9999\nlast words"));
  CHECK(background.size() <= 1000);
  Execution& next = bench.run([&] { bench.ends(); });
  CHECK(next.background.empty());
}

TEST_CASE("when there is too much text, the spill has all of it") {
  Bench bench;
  std::string all;
  Execution& execution = bench.run([&] {
    bench.starts();
    for (int i = 0; i < 1000; ++i) {
      std::string line = "line " + std::to_string(i) + "\n";
      all += line;
      i % 10 ? bench.fake->out(line) : bench.fake->err(line);
    }
    bench.ends();
  });
  CHECK(execution.full_output == "outputs/7.txt");
  CHECK(bench.spill.text == all);
  CHECK(execution.bytes_out == all.size());
  Execution& little = bench.run([&] {
    bench.fake->out("x");
    bench.ends();
  });
  CHECK(little.full_output == "");
}

TEST_CASE("a cell that stops when asked keeps the kernel") {
  Bench bench;
  bench.fake->on_interrupt = [&] { bench.raises("KeyboardInterrupt"); };
  Execution& late = bench.run([&] { bench.starts(); }, 50ms);
  CHECK(late.status == Status::timed_out);
  CHECK(late.kept);
  CHECK(late.ended - late.started < 900ms);  // at the first SIGINT: the second is 1 s later

  Execution& asked = bench.run([&] {
    bench.starts();
    bench.executions.back().request_stop(Execution::Stop::interrupt);
  });
  CHECK(asked.status == Status::interrupted);
  CHECK(asked.kept);
  CHECK(bench.fake->interrupts == 2);
  CHECK(bench.run([&] { bench.ends(); }).status == Status::ok);
}

TEST_CASE("a cell that ends by itself when it is asked to stop has ended ok") {
  Bench bench;
  bench.fake->on_interrupt = [&] { bench.ends(); };
  Execution& execution = bench.run([&] { bench.starts(); }, 50ms);
  CHECK(execution.status == Status::ok);
  CHECK(execution.notes.size() == 1);
}

TEST_CASE("SIGINT waits until the cell has begun, since before it is ignored") {
  Bench bench;
  bench.fake->on_interrupt = [&] { bench.raises("KeyboardInterrupt"); };
  boost::asio::steady_timer later(bench.io, 200ms);
  Execution& execution = bench.run(
      [&] {
        later.expires_after(200ms);
        later.async_wait([&](auto) { bench.starts(); });
      },
      20ms);
  CHECK(execution.status == Status::timed_out);
  CHECK(execution.ended - execution.started >= 200ms);
  CHECK(bench.fake->interrupts == 1);
}

TEST_CASE("what ignores SIGINT is interrupted again, loses its children, and is killed after 3 s") {
  Bench bench;
  Execution& execution = bench.run([&] { bench.starts(); }, 100ms);
  CHECK(execution.status == Status::timed_out);
  CHECK_FALSE(execution.kept);
  CHECK(bench.fake->interrupts == 3);
  CHECK(bench.fake->child_kills == 1);
  CHECK(bench.fake->killed);
  CHECK(execution.ended - execution.started >= 3100ms);
  CHECK(execution.ended - execution.started < 6s);
  CHECK_FALSE(bench.kernel.alive());
  Execution& next = bench.run([] {});
  CHECK(next.status == Status::kernel_died);
  CHECK_FALSE(next.kept);
}

TEST_CASE("a server that stalls takes none of a kernel's time for obeying") {
  Bench bench;
  boost::asio::steady_timer obeys(bench.io);
  bench.fake->on_interrupt = [&] {
    if (bench.fake->interrupts == 1) std::this_thread::sleep_for(3s);  // past every step
    if (bench.fake->interrupts != 2) return;
    obeys.expires_after(300ms);
    obeys.async_wait([&](auto) { bench.raises("KeyboardInterrupt"); });
  };
  Execution& execution = bench.run([&] { bench.starts(); }, 50ms);
  CHECK(execution.status == Status::timed_out);
  CHECK(execution.kept);
  CHECK(bench.fake->interrupts == 2);
}

TEST_CASE("a death is reported with its cause and all that was said before") {
  Bench bench;
  Execution& execution = bench.run([&] {
    bench.starts();
    bench.fake->out("before");
    bench.fake->err("Fatal Python error: Segmentation fault");
    bench.fake->die("SIGSEGV (segmentation fault)");
  });
  CHECK(execution.status == Status::kernel_died);
  CHECK(execution.cause == "SIGSEGV (segmentation fault)");
  CHECK_FALSE(execution.kept);
  CHECK(story(execution.outputs) == "beforeFatal Python error: Segmentation fault");
}

TEST_CASE("a kernel that breaks the link is killed, and the reader is told") {
  struct Row {
    const char* name;
    KernelEvent event;
  };
  for (const Row& row : {
           Row{"bytes", Violation{"a frame header that is not JSON"}},
           Row{"a wrong message", frame(R"({"ev":"done"})")},
           Row{"an unknown message", frame(R"({"ev":"dance"})")},
           Row{"ready twice", frame(R"({"ev":"ready"})")},
           Row{"wrong lengths", frame(R"({"ev":"display","id":1,"data":{}})", "x")},
       }) {
    CAPTURE(row.name);
    Bench bench;
    Execution& execution = bench.run([&] { bench.fake->say(row.event); });
    CHECK(execution.status == Status::kernel_died);
    CHECK_FALSE(execution.kept);
    CHECK(bench.fake->killed);
    CHECK(execution.cause.starts_with("it sent "));
  }
}

TEST_CASE("a kernel that closes its link without ending is killed") {
  Bench bench;
  Execution& execution = bench.run([&] { bench.fake->say(Closed()); });
  CHECK(execution.status == Status::kernel_died);
  CHECK(bench.fake->killed);
  CHECK(execution.cause.find("closed its link") != std::string::npos);
}

TEST_CASE("a child process that the memory limit killed is a note, not a death") {
  Bench bench;
  Execution& execution = bench.run([&] {
    bench.fake->memory_kills = 1;
    bench.ends();
  });
  CHECK(execution.status == Status::ok);
  REQUIRE(execution.notes.size() == 1);
  CHECK(execution.notes[0].find("memory limit") != std::string::npos);
  CHECK(bench.run([&] { bench.ends(); }).notes.empty());
}

TEST_CASE("a question waits for its answer") {
  Bench bench;
  bench.fake->on_send = [](const auto&) {};
  auto& execution = bench.executions.emplace_back(bench.io.get_executor(), "e", "input()");
  execution.can_ask = true;
  execution.timeout = 10s;
  async::TaskGroup tasks(bench.io.get_executor());
  tasks.spawn(bench.kernel.run(execution));
  let_run(bench.io, 50ms);
  bench.says(R"({"ev":"input_request","id":N,"prompt":"Name? ","password":true})");
  let_run(bench.io, 50ms);
  REQUIRE(execution.status == Status::waiting_input);
  REQUIRE(execution.input);
  CHECK(execution.input->prompt == "Name? ");
  CHECK(execution.input->password);

  run_to_end(bench.io, bench.kernel.answer(execution, "Ada"));
  CHECK(bench.fake->sent.back() == object(R"({"op":"reply","id":1,"value":"Ada"})"));
  CHECK(execution.status == Status::running);
  run_to_end(bench.io, bench.kernel.answer(execution, "again"));
  CHECK(bench.fake->sent.size() == 2);
  bench.ends();
  run_to_end(bench.io, tasks.join());
  CHECK(execution.status == Status::ok);
}

TEST_CASE("the time limit runs on while a question waits, and nobody's answer has no value") {
  Bench bench;
  bench.fake->on_interrupt = [&] { bench.raises("KeyboardInterrupt"); };
  auto asks = [&] {
    bench.starts();
    bench.says(R"({"ev":"input_request","id":N,"prompt":"","password":false})");
  };
  Execution& execution = bench.run(asks, 50ms);
  CHECK(execution.status == Status::timed_out);
  CHECK_FALSE(execution.input);
}

TEST_CASE("a kernel that dies while it starts says why") {
  boost::asio::io_context io(1);
  auto fake = std::make_shared<FakeKernel>(io);
  Kernel kernel(io.get_executor(), std::make_unique<FakeChannel>(fake), OutputLimits(), nullptr);
  fake->err("ModuleNotFoundError: No module named 'IPython'\n");
  fake->die("exit code 1");
  CHECK_THROWS_WITH(run_to_end(io, kernel.ready(30s)),
                    "Python did not start: exit code 1\nIt said:\nModuleNotFoundError: No module "
                    "named 'IPython'");
  run_to_end(io, kernel.close());
}

TEST_CASE("a kernel that does not come up is given up") {
  boost::asio::io_context io(1);
  auto fake = std::make_shared<FakeKernel>(io);
  Kernel kernel(io.get_executor(), std::make_unique<FakeChannel>(fake), OutputLimits(), nullptr);
  CHECK_THROWS_WITH(run_to_end(io, kernel.ready(1s)),
                    "Python did not start: it was not ready after 1 s");
  CHECK(fake->killed);
  run_to_end(io, kernel.close());
}

TEST_CASE("closing asks first and kills after that") {
  boost::asio::io_context io(1);
  auto quickest = std::chrono::steady_clock::duration::max();
  for (bool obeys : {true, true, true, true, false}) {
    CAPTURE(obeys);
    auto fake = std::make_shared<FakeKernel>(io);
    Kernel kernel(io.get_executor(), std::make_unique<FakeChannel>(fake), OutputLimits(), nullptr);
    fake->ready();
    run_to_end(io, kernel.ready(30s));
    if (obeys) fake->on_send = [&](const auto&) { fake->die("exit code 0"); };
    auto begun = std::chrono::steady_clock::now();
    run_to_end(io, kernel.close());
    CHECK(fake->sent.back() == object(R"({"op":"shutdown"})"));
    CHECK(fake->killed == !obeys);
    CHECK_FALSE(kernel.alive());
    auto took = std::chrono::steady_clock::now() - begun;
    CHECK(took < 20s);
    if (obeys) quickest = std::min(quickest, took);
  }
  CHECK(quickest < 100ms);  // one that obeys is not waited for until it would be killed
}

TEST_CASE("a cancelled run kills the sandbox and still ends its execution") {
  Bench bench;
  auto& execution = bench.executions.emplace_back(bench.io.get_executor(), "e", "code");
  execution.timeout = 10s;
  async::TaskGroup tasks(bench.io.get_executor());
  tasks.spawn(bench.kernel.run(execution));
  let_run(bench.io, 50ms);
  CHECK(execution.status == Status::running);
  tasks.cancel();
  run_to_end(bench.io, tasks.join());
  CHECK(execution.status == Status::interrupted);
  CHECK_FALSE(execution.kept);
  CHECK(bench.fake->killed);
}

TEST_CASE("closing while a cell runs ends the cell") {
  Bench bench;
  auto& execution = bench.executions.emplace_back(bench.io.get_executor(), "e", "code");
  async::TaskGroup tasks(bench.io.get_executor());
  tasks.spawn(bench.kernel.run(execution));
  let_run(bench.io, 50ms);
  run_to_end(bench.io, bench.kernel.close());
  run_to_end(bench.io, tasks.join());
  CHECK(execution.status == Status::interrupted);
  CHECK(execution.cause == "its session was closed");
}

TEST_CASE("a kernel may go away while its cell runs") {
  boost::asio::io_context io(1);
  auto fake = std::make_shared<FakeKernel>(io);
  auto kernel = std::make_unique<Kernel>(io.get_executor(), std::make_unique<FakeChannel>(fake),
                                         OutputLimits(), nullptr);
  fake->ready();
  Execution execution(io.get_executor(), "e", "code");
  async::TaskGroup tasks(io.get_executor());
  tasks.spawn(kernel->run(execution));
  let_run(io, 20ms);
  kernel.reset();
  run_to_end(io, tasks.join());
  CHECK(execution.status == Status::interrupted);
  let_run(io, 20ms);
}

}  // namespace
}  // namespace sandbox
