#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/sandbox/place.hpp"
#include "tests/sandbox/remote_place.hpp"

// What every backend must do, tried on each one that this machine can run; and, at the end, what
// the local one promises beyond that.

namespace sandbox {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Status = Execution::Status;

awaitable<void> read_file(Files& files, std::string path, std::string& out) {
  out = co_await files.read(path, 0, 1 << 20);
}

awaitable<void> stat_file(Files& files, std::string path, FileInfo& info) {
  info = co_await files.stat(std::move(path));
}

awaitable<void> write_file(Files& files, std::string path, std::string bytes) {
  co_await files.write(path, std::move(bytes));
}

TEST_CASE_TEMPLATE("cells run, state persists, and output keeps its order", Any, Place,
                   RemotePlace) {
  if (!Any::possible()) return;
  Any place;
  CHECK(place.sandbox->description().starts_with("Python 3."));
  CHECK(place.story(place.run("x = 41\nprint('a')\nx + 1")) == "a\n[42]");
  CHECK(place.story(place.run("x")) == "[41]");
  CHECK(place.executions.back().number == 2);
  Execution& mixed = place.run(
      "import os\n"
      "for i in range(20):\n"
      "    print('p', i); display(i); os.system(f'echo s {i}')");
  std::string expected;
  for (int i = 0; i < 20; ++i) {
    std::string n = std::to_string(i);
    expected += "p " + n + "\n[" + n + "]s " + n + "\n";
  }
  CHECK(place.story(mixed) == expected);

  SUBCASE("an error leaves the kernel") {
    Execution& bad = place.run("print('before')\n1/0");
    CHECK(bad.status == Status::raised);
    CHECK(place.story(bad) == "before\n[ZeroDivisionError]");
    CHECK(place.story(place.run("x")) == "[41]");
  }
  SUBCASE("a time limit interrupts and keeps") {
    Execution& late = place.run("import time\ntime.sleep(60)", 1s);
    CHECK(late.status == Status::timed_out);
    CHECK(late.kept);
    CHECK(late.ended - late.started < 30s);
    CHECK(place.story(place.run("x")) == "[41]");
  }
  SUBCASE("what cannot be interrupted loses its children, or the kernel") {
    Execution& child = place.run(
        "import subprocess, signal\n"
        "r = subprocess.run(['sh', '-c', 'trap \"\" INT; sleep 60'],"
        " preexec_fn=lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT]))",
        1s);
    CHECK(child.status == Status::timed_out);
    CHECK(child.kept);
    Execution& stubborn = place.run(
        "import signal\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"
        "while True: pass",
        1s);
    CHECK(stubborn.status == Status::timed_out);
    CHECK_FALSE(stubborn.kept);
    CHECK_FALSE(place.sandbox->alive());
  }
  SUBCASE("a request to stop") {
    Execution& execution = place.begin("import time\ntime.sleep(60)");
    async::TaskGroup tasks(place.io.get_executor());
    tasks.spawn(place.sandbox->run(execution));
    place.io.run_for(300ms);
    execution.request_stop(Execution::Stop::interrupt);
    run_to_end(place.io, tasks.join());
    CHECK(execution.status == Status::interrupted);
    CHECK(execution.kept);
  }
  SUBCASE("files, from both sides") {
    run_to_end(place.io, write_file(place.sandbox->files(), "in.txt", "from outside"));
    Execution& copied =
        place.run("t = open('in.txt').read()\nopen('out.txt', 'w').write(t.upper())\nt");
    CHECK(place.story(copied) == "['from outside']");
    std::string text;
    run_to_end(place.io, read_file(place.sandbox->files(), "out.txt", text));
    CHECK(text == "FROM OUTSIDE");
  }
  SUBCASE("too much text has a gap, and a file with all of it") {
    Execution& much = place.run("for i in range(100_000): print('line', i)");
    CHECK(much.status == Status::ok);
    REQUIRE(much.full_output == "outputs/" + std::to_string(much.number) + ".txt");
    FileInfo info;
    run_to_end(place.io, stat_file(place.sandbox->files(), much.full_output, info));
    CHECK(info.size == much.bytes_out);
  }
  SUBCASE("output of the background comes with the next cell") {
    place.run(
        "import threading, time\n"
        "def late():\n  time.sleep(.3); print('late'); open('late', 'w').close()\n"
        "threading.Thread(target=late).start()");
    bool printed = false;
    for (int i = 0; i < 300 && !printed; ++i) {
      let_run(place.io, 100ms);
      try {
        FileInfo info;
        run_to_end(place.io, stat_file(place.sandbox->files(), "late", info));
        printed = true;
      } catch (const std::exception&) {
      }
    }
    REQUIRE(printed);
    let_run(place.io, 300ms);
    Execution& next = place.run("1");
    CHECK(place.story(next) == "[1]");
    REQUIRE(next.background.size() == 1);
    CHECK(std::get<Text>(next.background[0].what).bytes == "late\n");
  }
}

TEST_CASE_TEMPLATE("a question is answered, or said not to be", Any, Place, RemotePlace) {
  if (!Any::possible()) return;
  Any place;
  Execution& execution = place.begin("name = input('Name? ')\nname");
  execution.can_ask = true;
  async::TaskGroup tasks(place.io.get_executor());
  tasks.spawn(place.sandbox->run(execution));
  for (int i = 0; i < 1200 && execution.status != Status::waiting_input; ++i)
    place.io.restart(), place.io.run_for(50ms);
  REQUIRE(execution.status == Status::waiting_input);
  CHECK(execution.input->prompt == "Name? ");
  run_to_end(place.io, place.sandbox->answer(execution, "Ada"));
  run_to_end(place.io, tasks.join());
  CHECK(execution.status == Status::ok);
  CHECK(place.story(execution).ends_with("['Ada']"));
  CHECK(place.run("input('again?')").status == Status::raised);
}

TEST_CASE_TEMPLATE("a chart arrives as an image", Any, Place, RemotePlace) {
  if (!Any::possible()) return;
  Any place;
  Execution& chart =
      place.run("import matplotlib.pyplot as plt\nplt.plot([1, 2, 3])\nplt.title('t')\nplt.show()");
  REQUIRE_MESSAGE(chart.status == Status::ok, "the Python of these tests needs matplotlib");
  const Display* shown = nullptr;
  for (const Output& output : chart.outputs)
    if (const auto* found = std::get_if<Display>(&output.what)) shown = found;
  REQUIRE(shown);
  REQUIRE(shown->binary.size() == 1);
  CHECK(shown->binary[0].mime == "image/png");
  CHECK(shown->binary[0].bytes.starts_with("\x89PNG\r\n"));
}

TEST_CASE_TEMPLATE("a death is reported with its cause", Any, Place, RemotePlace) {
  if (!Any::possible()) return;
  struct Row {
    const char* code;
    const char* cause;
    const char* said;
  };
  for (const Row& row : {
           Row{"import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
               "SIGSEGV (segmentation fault)", "Segmentation fault"},
           Row{"import os\nprint('x')\nos._exit(3)", "exit code 3", "x"},
           Row{"import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL", ""},
           Row{"import os\nos.close(3)", "", ""},
       }) {
    CAPTURE(row.code);
    Any place;
    Execution& dead = place.run(row.code);
    CHECK(dead.status == Status::kernel_died);
    CHECK_FALSE(dead.kept);
    CAPTURE(dead.cause);
    CHECK(dead.cause.starts_with(row.cause));
    CHECK(place.story(dead).find(row.said) != std::string::npos);
    CHECK_FALSE(place.sandbox->alive());
  }
}

TEST_CASE("the memory limit ends what exceeds it, and is named") {
  Limits limits;
  limits.memory = 512 << 20;
  Place place(limits);
  Execution& greedy =
      place.run("b = bytearray(1 << 30)\nfor i in range(0, len(b), 4096): b[i] = 1");
  CAPTURE(greedy.cause);
  bool refused = greedy.status == Status::raised;  // MemoryError, by the limit of one process
  bool killed = greedy.cause == "killed: memory limit of 512 MiB reached";
  CHECK((refused || killed));
}

TEST_CASE("a workspace that grows past its limit stops the cell that fills it") {
  Limits limits;
  limits.workspace = 20 << 20;
  Place place(limits);
  Execution& filling =
      place.run("import time\nopen('big', 'wb').write(bytes(40 << 20))\ntime.sleep(60)", 50s);
  CHECK(filling.status == Status::interrupted);
  REQUIRE(filling.notes.size() == 1);
  CHECK(filling.notes[0].find("limit is 20 MiB") != std::string::npos);
  // The next cell may make room.
  Execution& clearing = place.run("import os, time\nos.remove('big')\ntime.sleep(8)");
  CHECK(clearing.status == Status::ok);
  CHECK(clearing.notes.size() == 1);
  CHECK(place.run("1").notes.empty());
}

TEST_CASE("what cannot start says why and what to do") {
  Scratch scratch;
  boost::asio::io_context io(1);
  boost::asio::thread_pool pool(1);
  local::BackendOptions options;
  options.kernel_root = scratch.path / "kernel";
  auto backend = local::make_backend(io.get_executor(), pool, options);
  SandboxSpec spec;
  spec.name = "contract";
  fs::create_directory(scratch.path / "workspace");
  spec.workspace = scratch.path / "workspace";
  std::unique_ptr<Sandbox> sandbox;
  std::string problem;
  auto attempt = [&] {
    problem.clear();
    try {
      run_to_end(io, start(*backend, spec, sandbox), 90s);
    } catch (const StartError& refused) {
      problem = refused.what();
    }
  };
  spec.python.python = "/nowhere/python3";
  attempt();
  CHECK(problem.starts_with("there is no Python at /nowhere/python3"));

  spec.python.python = "/bin/true";
  attempt();
  CHECK(problem.starts_with("Python did not start: exit code 0"));
}

TEST_CASE("the kernel's own files are repaired when they were damaged") {
  Place place;
  fs::path package;
  for (const auto& entry : fs::directory_iterator(place.options.kernel_root))
    package = entry.path();
  fs::path main = package / "pykeep_kernel" / "main.py";
  std::ofstream(main) << "raise SystemExit(1)";
  std::unique_ptr<Sandbox> second;
  fs::create_directory(place.scratch.path / "second");
  SandboxSpec spec = place.spec;
  spec.workspace = place.scratch.path / "second";
  run_to_end(place.io, start(*place.backend, spec, second), 90s);
  CHECK(second->alive());
  run_to_end(place.io, second->close());
}

}  // namespace
}  // namespace sandbox
