#include <doctest/doctest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>

#include "sandbox/local/bubblewrap.hpp"
#include "sandbox/local/procfs.hpp"
#include "sandbox/local/trial.hpp"
#include "tests/sandbox/local/sandboxes.hpp"

using namespace sandbox;
using namespace sandbox::local;
using namespace sandbox::local::testing;

namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

bool within(milliseconds limit, const std::function<bool()>& condition) {
  for (auto end = Clock::now() + limit; Clock::now() < end; usleep(5000))
    if (condition()) return true;
  return condition();
}

// Whether a process with this argument runs anywhere on this machine.
bool runs(const std::string& argument) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc"))
    if (read_proc_file(entry.path() / "cmdline").find(argument) != std::string::npos) return true;
  return false;
}

std::vector<std::string> python(const std::string& code) {
  return {"/usr/bin/python3", "-u", "-c", code};
}

// Reads until `mark` has come.
std::string read_until(const Process& process, const std::string& mark) {
  std::string text;
  auto seen = within(milliseconds(30000), [&] {
    char buffer[1000];
    ssize_t size = read(process.out.get(), buffer, sizeof buffer);
    if (size > 0) text.append(buffer, static_cast<std::size_t>(size));
    return text.find(mark) != std::string::npos;
  });
  CHECK_MESSAGE(seen, "waited for " << mark << ", got " << text);
  return text;
}

bool ends(const Process& process) {
  pollfd wait{process.pidfd.get(), POLLIN, 0};
  return poll(&wait, 1, 30000) == 1;
}

}  // namespace

TEST_CASE("a program's end comes back as its status") {
  struct Row {
    const char* script;
    int exit_code;
  };
  Scratch workspace;
  for (const Row& row : {Row{"exit 0", 0}, Row{"exit 7", 7}, Row{"kill -9 $$", 128 + 9}}) {
    CAPTURE(row.script);
    Trial trial = try_script(small_sandbox(workspace.path), row.script);
    CHECK(trial.failure == "");
    CHECK(WEXITSTATUS(trial.status) == row.exit_code);
  }
}

TEST_CASE("an interrupt reaches the program and not its children") {
  Scratch workspace;
  auto process = launch(small_sandbox(workspace.path),
                        python("import subprocess, time\n"
                               "p = subprocess.Popen(['/bin/sleep', '60'])\n"
                               "sum(range(5000000))\n"
                               "try: print('up'); time.sleep(60)\n"
                               "except KeyboardInterrupt: print('interrupted', p.poll())\n"
                               "p.wait(); print('child', p.returncode)\n"
                               "time.sleep(60)"),
                        {});
  read_until(*process, "up");
  process->interrupt();
  read_until(*process, "interrupted None");
  CHECK(process->usage().processes == 2);
  process->kill_children();
  read_until(*process, "child -9");
  CHECK(process->usage().cpu_seconds > 0);
  process->kill();
  CHECK(ends(*process));
  CHECK(WEXITSTATUS(process->wait_status()) == 128 + SIGKILL);
}

TEST_CASE("destroying a process ends everything in it") {
  Scratch workspace;
  auto process = launch(small_sandbox(workspace.path),
                        {"/bin/sh", "-c", "setsid sleep 61.25 & echo up; exec sleep 61.25"}, {});
  read_until(*process, "up");
  CHECK(runs("61.25"));
  process.reset();
  CHECK(within(milliseconds(30000), [] { return !runs("61.25"); }));
}

TEST_CASE("everything dies with a server that is killed") {
  Scratch workspace;
  SandboxSpec spec = small_sandbox(workspace.path);
  spec.name = "orphan";  // this copy of the test counts its control groups on its own
  pid_t server = fork();
  if (server == 0) {
    auto process = launch(spec, {"/bin/sh", "-c", "echo >up; exec sleep 62.25"}, {});
    pause();
    _exit(0);
  }
  REQUIRE(
      within(milliseconds(30000), [&] { return std::filesystem::exists(workspace.path / "up"); }));
  kill(server, SIGKILL);
  waitpid(server, nullptr, 0);
  CHECK(within(milliseconds(30000), [] { return !runs("62.25"); }));
}

TEST_CASE("the memory of all processes together is limited, and the kill is counted") {
  Scratch workspace;
  SandboxSpec spec = small_sandbox(workspace.path);
  spec.limits.memory = 96 << 20;
  Trial trial =
      try_program(spec, python("import os, time\n"
                               "for _ in range(4):\n"
                               "  if os.fork() == 0:\n"
                               "    a = bytearray(b'x') * (40 << 20); time.sleep(5); os._exit(0)\n"
                               "statuses = [os.wait()[1] for _ in range(1)]\n"
                               "print(statuses)"));
  CAPTURE(trial.out);
  CAPTURE(trial.err);
  CHECK(trial.failure == "");
  CHECK(trial.memory_kills >= 1);
}

TEST_CASE("the memory of all files in /tmp and /dev/shm counts as well") {
  Scratch workspace;
  SandboxSpec spec = small_sandbox(workspace.path);
  spec.limits.memory = 64 << 20;
  spec.limits.tmp = 128 << 20;
  spec.limits.file = 128 << 20;
  Trial trial = try_script(spec, "head -c 100000000 /dev/zero >/dev/shm/fill; exec sleep 2");
  CAPTURE(trial.err);
  CHECK(trial.memory_kills >= 1);
}

TEST_CASE("names are data, whatever they look like") {
  Scratch parent;
  for (const char* name : {"with space", "-c", "--bind", "new\nline", "ünïcode", "$(id)"}) {
    CAPTURE(name);
    auto workspace = parent.path / name;
    std::filesystem::create_directory(workspace);
    SandboxSpec spec = small_sandbox(workspace);
    spec.environment = {{"--setenv", "--bind\n/ /"}};
    Trial trial = try_script(spec, "echo here >file && ls /workspace");
    CHECK(trial.failure == "");
    CHECK(trial.out == "file\n");
    CHECK(contents_of(workspace / "file") == "here\n");
  }
}

TEST_CASE("a workspace below a directory that is closed to others is reached all the same") {
  Scratch closed;
  std::filesystem::permissions(closed.path, std::filesystem::perms::owner_all);
  auto workspace = closed.path / "w", interpreter = closed.path / "python";
  std::filesystem::create_directory(workspace);
  std::filesystem::create_directory(interpreter);
  std::ofstream(interpreter / "marker") << "seen";
  SandboxSpec spec = small_sandbox(workspace);
  spec.python.visible = {interpreter};
  Trial trial = try_script(spec, "cat " + (interpreter / "marker").string());
  CHECK(trial.failure == "");
  CHECK(trial.out == "seen");
}

TEST_CASE("what cannot be isolated is not started") {
  struct Row {
    const char* name;
    std::function<void(SandboxSpec&)> spoil;
    const char* problem;
  };
  Scratch workspace;
  const Row rows[] = {
      {"no workspace", [](auto& spec) { spec.workspace = "/nonexistent"; }, "no such directory"},
      {"the root", [](auto& spec) { spec.python.visible = {"/"}; }, "not allowed"},
      {"all of /etc", [](auto& spec) { spec.python.visible = {"/etc/"}; }, "not allowed"},
      {"/proc", [](auto& spec) { spec.python.visible = {"/proc/self"}; }, "not allowed"},
      {"a gone template", [](auto& spec) { spec.python.visible = {"/gone"}; }, "no such directory"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    SandboxSpec spec = small_sandbox(workspace.path);
    row.spoil(spec);
    Trial trial = try_script(spec, "true");
    CHECK_MESSAGE(trial.failure.find(row.problem) != std::string::npos, trial.failure);
  }
}

TEST_CASE("a program that is not there is reported in bwrap's words") {
  Scratch workspace;
  Trial trial = try_program(small_sandbox(workspace.path), {"/no/such/python"});
  CHECK(explain_bwrap(trial.failure).find("rebuild the template") != std::string::npos);
}
