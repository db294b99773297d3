#include "sandbox/local/kernel_channel.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <functional>

#include "tests/sandbox/fake_kernel.hpp"

namespace sandbox::local {
namespace {

using namespace std::chrono_literals;

// A plain child process with the descriptors of a kernel, in no sandbox.
class ChildProcess : public Process {
 public:
  // `program` runs in the child, with descriptors 1, 2 and 3 as a kernel has them.
  explicit ChildProcess(const std::function<int()>& program) {
    int sockets[2], outs[2], errs[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) < 0 ||
        pipe2(outs, O_CLOEXEC) < 0 || pipe2(errs, O_CLOEXEC) < 0)
      throw std::runtime_error("no descriptors");
    std::fflush(nullptr);  // ThreadSanitizer's _exit would write it a second time, in the child
    pid_ = fork();
    if (pid_ == 0) {
      int highest = 100;
      for (int* fd : {&sockets[1], &outs[1], &errs[1]}) *fd = dup2(*fd, highest++);
      dup2(outs[1], 1);
      dup2(errs[1], 2);
      dup2(sockets[1], 3);
      close_range(4, ~0u, 0);
      _exit(program());
    }
    close(sockets[1]), close(outs[1]), close(errs[1]);
    for (int fd : {sockets[0], outs[0], errs[0]}) fcntl(fd, F_SETFL, O_NONBLOCK);
    link = Fd(sockets[0]);
    out = Fd(outs[0]);
    err = Fd(errs[0]);
    pidfd = Fd(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  }
  ~ChildProcess() override {
    kill();
    if (!waited_) waitpid(pid_, nullptr, 0);
  }
  void interrupt() override { ::kill(pid_, SIGINT); }
  void kill_children() override {}
  void kill() override {
    if (!waited_) ::kill(pid_, SIGKILL);
  }
  int wait_status() override {
    int status = 0;
    waitpid(pid_, &status, 0);
    waited_ = true;
    return status;
  }
  std::uint64_t memory_kills() override { return kills; }
  pid_t program() override { return pid_; }
  Usage usage() override { return Usage(); }
  bool is_sampled() const override { return false; }
  void enforce() override {}

  std::uint64_t kills = 0;

 private:
  pid_t pid_;
  bool waited_ = false;
};

void put(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t size = write(fd, bytes.data(), bytes.size());
    if (size <= 0) _exit(99);
    bytes.remove_prefix(size);
  }
}

std::string number(int i) {
  std::string header = "{\"ev\":\"n\",\"i\":" + std::to_string(i) + "}";
  return {static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0};
}

void put_frame(int i) { put(3, number(i) + "{\"ev\":\"n\",\"i\":" + std::to_string(i) + "}"); }

// Waits until the server has taken the last frame, as the kernel does after a display.
void until_taken() {
  int left = 1;
  while (ioctl(3, TIOCOUTQ, &left) == 0 && left > 0) usleep(20);
}

std::unique_ptr<KernelChannel> channel_of(boost::asio::io_context& io,
                                          std::shared_ptr<Process> process) {
  return make_kernel_channel(io.get_executor(), std::move(process), 2ull << 30);
}

struct Seen {
  std::string story;  // "a" for stdout, "(a)" for stderr, "<1>" for a frame
  std::size_t largest_piece = 0;
  std::uint64_t bytes = 0;
  std::string violation;
};

awaitable<void> see_all(KernelChannel& channel, Seen& seen, bool keep = true) {
  for (;;) {
    KernelEvent event = co_await channel.next();
    if (auto* piece = std::get_if<StreamBytes>(&event)) {
      seen.largest_piece = std::max(seen.largest_piece, piece->bytes.size());
      seen.bytes += piece->bytes.size();
      if (keep) seen.story += piece->is_stderr ? "(" + piece->bytes + ")" : piece->bytes;
    } else if (auto* frame = std::get_if<Frame>(&event)) {
      seen.story += "<" + boost::json::serialize(frame->header.at("i")) + ">";
    } else if (auto* violation = std::get_if<Violation>(&event)) {
      seen.violation = violation->what;
    } else {
      co_return;
    }
  }
}

awaitable<void> see_exit(KernelChannel& channel, Exit& exit) { exit = co_await channel.exit(); }

Seen see(const std::function<int()>& program) {
  boost::asio::io_context io(1);
  auto channel = channel_of(io, std::make_shared<ChildProcess>(program));
  Seen seen;
  run_to_end(io, see_all(*channel, seen));
  return seen;
}

TEST_CASE("what was written before a frame comes before it, and what was written after, after") {
  Seen seen = see([] {
    for (int i = 0; i < 300; ++i) {
      put(1, "o" + std::to_string(i));
      put(2, "e" + std::to_string(i));
      put_frame(i);
      until_taken();
    }
    put(1, "end");
    return 0;
  });
  std::string expected;
  for (int i = 0; i < 300; ++i) {
    std::string n = std::to_string(i);
    expected += "o" + n + "(e" + n + ")<" + n + ">";
  }
  CHECK(seen.story == expected + "end");
}

TEST_CASE("a child process that writes for ever does not hold up a frame") {
  boost::asio::io_context io(1);
  auto process = std::make_shared<ChildProcess>([] {
    if (fork() == 0) {
      close(3);
      std::string noise(65536, 'y');
      for (;;) put(1, noise);
    }
    usleep(20'000);
    put(2, "before");
    put_frame(1);
    return 0;
  });
  auto channel = channel_of(io, process);
  Seen seen;
  auto begun = std::chrono::steady_clock::now();
  run_to_end(io, see_all(*channel, seen));
  // The pipes are still open in the noisy child: the end came from the link.
  CHECK(std::chrono::steady_clock::now() - begun < 30s);
  CHECK(seen.story.find("<1>") != std::string::npos);
  CHECK(seen.story.find("(before)") < seen.story.find("<1>"));
  CHECK(seen.largest_piece <= 256 << 10);
}

TEST_CASE("how a kernel ended, as the reader is told") {
  struct Row {
    std::function<int()> program;
    std::uint64_t memory_kills;
    const char* cause;
  };
  for (const Row& row : {
           Row{[] { return 3; }, 0, "exit code 3 (os._exit, or C code that called exit)"},
           Row{[] { return 128 + 9; }, 0, "killed by SIGKILL"},
           Row{[] { return 128 + 9; }, 1, "killed: memory limit of 2 GiB reached"},
           Row{[] { return 128 + 11; }, 0, "SIGSEGV (segmentation fault)"},
           Row{[] { return signal(SIGABRT, SIG_DFL), abort(), 0; }, 0, "SIGABRT (aborted)"},
       }) {
    CAPTURE(row.cause);
    boost::asio::io_context io(1);
    auto process = std::make_shared<ChildProcess>(row.program);
    auto channel = channel_of(io, process);
    process->kills = row.memory_kills;
    Seen seen;
    run_to_end(io, see_all(*channel, seen));
    Exit exit;
    run_to_end(io, see_exit(*channel, exit));
    CHECK(exit.cause == row.cause);
  }
}

TEST_CASE("text right before the end is not lost") {
  CHECK(see([] { return put(2, "Fatal Python error"), 1; }).story == "(Fatal Python error)");
}

TEST_CASE("a link that ends with half a frame has no more to say") {
  Seen seen = see([] { return put(3, "\x20"), 0; });
  CHECK(seen.story == "");
  CHECK(seen.violation == "");
}

TEST_CASE("nonsense on the link is a violation, and the last event but Closed") {
  Seen seen = see([] {
    put_frame(1);
    put(3, "\xff\xff\xff\xff\xff\xff\xff\xff");
    put_frame(2);
    return 0;
  });
  CHECK(seen.story == "<1>");
  CHECK(seen.violation == "a frame header of more than 1 MiB");
}

TEST_CASE("nothing is read before it is asked for") {
  boost::asio::io_context io(1);
  auto process = std::make_shared<ChildProcess>([] {
    std::string noise(1 << 20, 'x');
    for (int i = 0; i < 64; ++i) put(1, noise);
    return 0;
  });
  auto channel = channel_of(io, process);
  usleep(50'000);
  int held = 0;
  ioctl(process->out.get(), FIONREAD, &held);
  CHECK(held <= 1 << 20);
  Seen seen;
  run_to_end(io, see_all(*channel, seen, false));
  CHECK(seen.bytes == 64ull << 20);
}

awaitable<void> next_once(KernelChannel& channel, std::optional<KernelEvent>& event) {
  event = co_await channel.next();
}

TEST_CASE("a cancelled wait loses nothing") {
  boost::asio::io_context io(1);
  auto process = std::make_shared<ChildProcess>([] {
    usleep(500'000);
    put(1, "text");
    put_frame(1);
    return 0;
  });
  auto channel = channel_of(io, process);
  std::optional<KernelEvent> event;
  async::TaskGroup tasks(io.get_executor());
  tasks.spawn(next_once(*channel, event));
  io.run_for(10ms);
  tasks.cancel();
  run_to_end(io, tasks.join());
  CHECK_FALSE(event);
  Seen seen;
  run_to_end(io, see_all(*channel, seen));
  CHECK(seen.story == "text<1>");
}

TEST_CASE("a frame larger than the socket's buffer is sent whole") {
  boost::asio::io_context io(1);
  auto process = std::make_shared<ChildProcess>([] {
    std::string all(8, '\0');
    if (read(3, all.data(), 8) != 8) return 1;
    std::size_t size = 0;
    for (int i = 3; i >= 0; --i) size = size << 8 | static_cast<unsigned char>(all[i]);
    usleep(20'000);
    std::string buffer(1 << 16, '\0');
    std::size_t got = 0;
    while (got < size) got += read(3, buffer.data(), buffer.size());
    put_frame(static_cast<int>(got / 1'000'000));
    return 0;
  });
  auto channel = channel_of(io, process);
  run_to_end(io, channel->send({{"code", std::string(5'000'000, 'x')}}, ""));
  Seen seen;
  run_to_end(io, see_all(*channel, seen));
  CHECK(seen.story == "<5>");
}

TEST_CASE("a kernel that is gone cannot be spoken to") {
  boost::asio::io_context io(1);
  auto channel = channel_of(io, std::make_shared<ChildProcess>([] { return 0; }));
  Seen seen;
  run_to_end(io, see_all(*channel, seen));
  CHECK_THROWS_AS(run_to_end(io, channel->send({{"op", "shutdown"}}, "")),
                  boost::system::system_error);
}

TEST_CASE("what is killed is reported as killed") {
  boost::asio::io_context io(1);
  auto process = std::make_shared<ChildProcess>([] { return pause(), 0; });
  auto channel = channel_of(io, process);
  channel->kill();
  Exit exit;
  run_to_end(io, see_exit(*channel, exit));
  CHECK(exit.signal == SIGKILL);
}

}  // namespace
}  // namespace sandbox::local
