#include "sandbox/exit_cause.hpp"

#include <sys/wait.h>

#include <cctype>
#include <csignal>
#include <cstring>
#include <utility>

#include "sandbox/bounded_text.hpp"

namespace sandbox {

namespace {

std::string signal_text(int signal) {
  const char* name = sigabbrev_np(signal);
  if (!name) return "signal " + std::to_string(signal);
  if (signal == SIGKILL) return "killed by SIGKILL";
  std::string description = sigdescr_np(signal);
  description[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(description[0])));
  return std::string("SIG") + name + " (" + description + ")";
}

}  // namespace

Exit describe_exit(int wait_status, bool memory_limit_reached, std::uint64_t memory_limit) {
  Exit exit;
  if (WIFSIGNALED(wait_status))
    exit.signal = WTERMSIG(wait_status);
  else
    exit.code = WEXITSTATUS(wait_status);
  if (exit.code > 128 && exit.code <= 128 + SIGRTMAX)
    exit.signal = std::exchange(exit.code, 0) - 128;
  exit.memory_limit = memory_limit_reached && exit.signal == SIGKILL;
  if (exit.memory_limit)
    exit.cause = "killed: memory limit of " + size_text(memory_limit) + " reached";
  else if (exit.signal)
    exit.cause = signal_text(exit.signal);
  else
    exit.cause =
        "exit code " + std::to_string(exit.code) + " (os._exit, or C code that called exit)";
  return exit;
}

}  // namespace sandbox
