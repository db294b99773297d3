#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "sandbox/pandastack/backend.hpp"
#include "tests/sandbox/place.hpp"

namespace sandbox {

// The stand-in for PandaStack (tests/fake_pandastack), for as long as the tests run.
// PYKEEP_FAKE_PANDASTACK is the command that starts it, to which a port is added.
class FakePandaStack {
 public:
  // Null, having said why, when it cannot be had.
  static const FakePandaStack* get() {
    static FakePandaStack one;
    return one.base_.empty() ? nullptr : &one;
  }
  const std::string& base() const { return base_; }

 private:
  FakePandaStack() {
    const char* command = std::getenv("PYKEEP_FAKE_PANDASTACK");
    int ends[2];
    if (!command || pipe(ends) != 0) {
      std::puts(
          "skipped: PYKEEP_FAKE_PANDASTACK does not say how PandaStack's stand-in is started");
      return;
    }
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      dup2(ends[1], STDOUT_FILENO);
      close(ends[0]);
      std::string line = "exec " + std::string(command) + " 0";
      execl("/bin/sh", "sh", "-c", line.c_str(), nullptr);
      _exit(127);
    }
    close(ends[1]);
    std::FILE* output = fdopen(ends[0], "r");
    char line[256] = "", url[200] = "";
    bool said = std::fgets(line, sizeof line, output) != nullptr;
    std::fclose(output);
    if (said && std::sscanf(line, "fake pandastack ready on %199s", url) == 1)
      base_ = url;
    else
      std::printf("skipped: PandaStack's stand-in does not start: %s\n", line);
  }
  ~FakePandaStack() {
    if (pid_ <= 0) return;
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
  }

  pid_t pid_ = -1;
  std::string base_;
};

// At PandaStack, or what stands in for it.
struct RemotePlace : Desk {
  RemotePlace() {
    setenv("PANDASTACK_API", FakePandaStack::get()->base().c_str(), 1);
    setenv("PANDASTACK_API_KEY", "pds_local_dev_token", 1);
    options.root = scratch.path;
    spec.name = "contract";
    spec.workspace = new_workspace("workspace");
    spec.directory = new_workspace("session");
    spec.python.name = "code-interpreter";
    backend = pandastack::make_backend(io.get_executor(), pool, options);
    run_to_end(io, start(*backend, spec, sandbox), std::chrono::seconds(90));
  }
  ~RemotePlace() {
    if (sandbox) run_to_end(io, sandbox->close());
    sandbox.reset();
    run_to_end(io, backend->forget(spec));
  }
  static bool possible() { return FakePandaStack::get() != nullptr; }

  pandastack::BackendOptions options;
};

}  // namespace sandbox
