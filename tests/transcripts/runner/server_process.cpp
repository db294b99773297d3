#include "tests/transcripts/runner/server_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace transcripts {

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

void check(bool ok, const char* what) {
  if (!ok) throw std::system_error(errno, std::system_category(), what);
}

int milliseconds_until(Clock::time_point deadline) {
  auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
  return left > 0 ? static_cast<int>(left) : 0;
}

bool ready(int fd, short what, Clock::time_point deadline) {
  pollfd poll_for{fd, what, 0};
  return poll(&poll_for, 1, milliseconds_until(deadline)) == 1;
}

}  // namespace

ServerProcess::ServerProcess(const std::vector<std::string>& command,
                             const std::vector<std::string>& environment) {
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
    dup2(out[1], STDOUT_FILENO);
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

ServerProcess::~ServerProcess() {
  close_input();
  close(out_);
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  std::error_code ignored;
  std::filesystem::remove_all(state_, ignored);
}

void ServerProcess::send(const std::string& line, milliseconds limit) {
  auto deadline = Clock::now() + limit;
  std::string text = line + "\n";
  for (std::size_t sent = 0; sent < text.size();) {
    if (!ready(in_, POLLOUT, deadline)) throw std::runtime_error("the server does not read");
    ssize_t size = write(in_, text.data() + sent, text.size() - sent);
    if (size < 0 && errno == EAGAIN) continue;
    if (size < 0) throw std::runtime_error("the server has closed its input");
    sent += size;
  }
}

std::optional<std::string> ServerProcess::receive(milliseconds limit) {
  auto deadline = Clock::now() + limit;
  for (;;) {
    if (std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    char chunk[65536];
    if (!ready(out_, POLLIN, deadline)) return std::nullopt;
    ssize_t size = read(out_, chunk, sizeof chunk);
    if (size <= 0) return std::nullopt;
    buffer_.append(chunk, size);
  }
}

void ServerProcess::close_input() {
  if (in_ >= 0) close(in_);
  in_ = -1;
}

std::optional<int> ServerProcess::wait(milliseconds limit) {
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
