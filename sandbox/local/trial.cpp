#include "sandbox/local/trial.hpp"

#include <poll.h>
#include <unistd.h>

#include "sandbox/local/process.hpp"

namespace sandbox::local {

namespace {

constexpr std::size_t kCap = 64 << 10;

void drain(const Fd& from, std::string& into) {
  char buffer[4096];
  for (ssize_t size; (size = read(from.get(), buffer, sizeof buffer)) > 0;)
    if (into.size() < kCap) into.append(buffer, static_cast<std::size_t>(size));
}

}  // namespace

Trial try_program(const SandboxSpec& spec, const std::vector<std::string>& argv,
                  std::chrono::milliseconds limit) {
  Trial trial;
  std::unique_ptr<Process> process;
  try {
    process = launch(spec, argv, {});
  } catch (const StartError& error) {
    trial.failure = error.what();
    return trial;
  }
  constexpr std::chrono::milliseconds kLook{100};
  auto deadline = std::chrono::steady_clock::now() + limit;
  pollfd ended{process->pidfd.get(), POLLIN, 0};
  while (!ended.revents && std::chrono::steady_clock::now() < deadline) {
    poll(&ended, 1, kLook.count());
    drain(process->out, trial.out);
    drain(process->err, trial.err);
    if (process->is_sampled()) process->enforce();
  }
  drain(process->out, trial.out);
  drain(process->err, trial.err);
  trial.memory_kills = process->memory_kills();
  trial.status = process->wait_status();
  if (!ended.revents) trial.failure = "it did not end in time";
  if (trial.err.starts_with("bwrap: ")) trial.failure = trial.err;
  return trial;
}

Trial try_script(const SandboxSpec& spec, const std::string& shell_script) {
  std::vector<std::string> argv = {"/bin/sh", "-c", shell_script};
  return try_program(spec, argv);
}

}  // namespace sandbox::local
