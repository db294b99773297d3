#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "sandbox/local/process.hpp"
#include "sandbox/local/trial.hpp"
#include "tests/sandbox/local/sandboxes.hpp"

// Each file in probes/ is a program that tries one thing it must not be able to do, and prints "OK"
// or what it managed.

using namespace sandbox;
using namespace sandbox::local;
using namespace sandbox::local::testing;

namespace {

namespace fs = std::filesystem;

constexpr uid_t kOrdinaryUser = 61183;

// A server on this machine that must not be reachable from inside.
class Listener {
 public:
  Listener() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t size = sizeof address;
    REQUIRE(bind(fd_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(listen(fd_.get(), 1) == 0);
    REQUIRE(getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port = ntohs(address.sin_port);
  }
  int port = 0;

 private:
  Fd fd_;
};

std::vector<fs::path> probes() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator("tests/sandbox/local/probes"))
    if (entry.path().extension() == ".py") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

}  // namespace

TEST_CASE("hostile programs manage nothing") {
  setenv("PYKEEP_CANARY", "canary", 1);
  Listener listener;
  Scratch host;
  std::ofstream(host.path / "secret") << "canary";
  auto files = probes();
  REQUIRE(files.size() > 15);
  for (const fs::path& file : files) {
    CAPTURE(file.string());
    Scratch workspace;
    SandboxSpec spec = small_sandbox(workspace.path);
    spec.environment = {{"PYKEEP_TEST_PORT", std::to_string(listener.port)},
                        {"PYKEEP_TEST_FILE", (host.path / "secret").string()}};
    Trial trial = try_program(spec, {"/usr/bin/python3", "-c", contents_of(file)});
    CAPTURE(trial.err);
    CHECK(trial.failure == "");
    CHECK(trial.out == "OK\n");
  }
  unsetenv("PYKEEP_CANARY");
}

TEST_CASE("the same for a server that is an ordinary user") {
  if (geteuid() != 0) return;  // then the case above was it
  pid_t child = fork();
  if (child == 0) {
    syscall(SYS_setgroups, 0, nullptr);
    syscall(SYS_setresgid, kOrdinaryUser, kOrdinaryUser, kOrdinaryUser);
    syscall(SYS_setresuid, kOrdinaryUser, kOrdinaryUser, kOrdinaryUser);
    execl("/proc/self/exe", "test", "--test-case=hostile programs manage nothing,*memory of all*",
          nullptr);
    _exit(127);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}
