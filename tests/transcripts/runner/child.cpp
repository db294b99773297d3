#include "tests/transcripts/runner/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>
#include <thread>

namespace transcripts {

namespace {

using std::chrono::milliseconds;

void check(bool ok, const char* what) {
  if (!ok) throw std::system_error(errno, std::system_category(), what);
}

}  // namespace

int milliseconds_until(Clock::time_point deadline) {
  auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

bool ready(int fd, short what, Clock::time_point deadline) {
  pollfd poll_for{fd, what, 0};
  return poll(&poll_for, 1, milliseconds_until(deadline)) == 1;
}

Child::Child(const std::vector<std::string>& command, const std::vector<std::string>& environment,
             int output) {
  std::string name = (std::filesystem::temp_directory_path() / "pykeep-test-XXXXXX").string();
  check(mkdtemp(name.data()), "mkdtemp");
  state_ = name;
  int in[2], out[2];
  check(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0, "pipe2");

  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_ = fork();
  check(pid_ >= 0, "fork");
  if (pid_ == 0) {  // the runner has one thread, so that the child may do as it likes
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], output);
    setenv("PYKEEP_STATE_DIR", name.c_str(), 1);
    for (const std::string& assignment : environment) putenv(const_cast<char*>(assignment.c_str()));
    execvp(arguments[0], arguments.data());
    perror(arguments[0]);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  in_ = in[1];
  out_ = out[0];
  check(fcntl(in_, F_SETFL, O_NONBLOCK) == 0, "fcntl");
}

Child::~Child() {
  close_input();
  close(out_);
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(state_, ignored);
}

void Child::close_input() {
  if (in_ >= 0) close(in_);
  in_ = -1;
}

void Child::signal(int number) {
  if (pid_ > 0) kill(pid_, number);
}

std::optional<int> Child::wait(milliseconds limit) {
  auto deadline = Clock::now() + limit;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) return std::nullopt;
    std::this_thread::sleep_for(milliseconds(5));
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace transcripts
