#include "sandbox/local/kernel_channel.hpp"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>

#include "sandbox/exit_cause.hpp"
#include "sandbox/frames.hpp"

namespace sandbox::local {

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t kPiece = 256 << 10;  // of a stream, in one event
constexpr auto kSendLimit = 10s;
constexpr auto kExitLimit = 5s;
// Events without a wait between them, after which others get their turn on the thread.
constexpr int kBurst = 32;

boost::system::system_error last_error(const char* what) {
  return boost::system::system_error(errno, boost::system::system_category(), what);
}

asio::posix::stream_descriptor own(const asio::any_io_executor& executor, int fd,
                                   const char* what) {
  if (fd < 0) throw last_error(what);
  return asio::posix::stream_descriptor(executor, fd);
}

awaitable<void> wait_for(asio::posix::stream_descriptor& descriptor,
                         asio::posix::descriptor_base::wait_type what) {
  co_await descriptor.async_wait(what, asio::use_awaitable);
}

// All four descriptors are watched by an epoll of their own, and Asio watches that one: a wait for
// "anything" is one operation, and which of them it was costs one call more.
class LocalChannel : public KernelChannel {
 public:
  LocalChannel(asio::any_io_executor executor, std::shared_ptr<Process> process,
               std::uint64_t memory_limit)
      : executor_(executor),
        process_(std::move(process)),
        memory_limit_(memory_limit),
        any_(own(executor, epoll_create1(EPOLL_CLOEXEC), "epoll_create1")),
        buffer_(kPiece, '\0') {
    watch(process_->link.get(), kLink);
    watch(process_->pidfd.get(), kEnd);
    for (Pipe& pipe : pipes_) {
      pipe.fd = pipe.is_stderr ? process_->err.get() : process_->out.get();
      fcntl(pipe.fd, F_SETPIPE_SZ, kPiece);  // fewer, larger pieces; it works without
      watch(pipe.fd, pipe.key);
    }
  }

  awaitable<KernelEvent> next() override;
  std::optional<KernelEvent> poll() override;
  awaitable<void> send(boost::json::object header, std::string payload) override;
  void interrupt() override { process_->interrupt(); }
  void kill_children() override { process_->kill_children(); }
  void kill() override {
    killed_ = true;
    process_->kill();
  }
  awaitable<Exit> exit() override;
  std::uint64_t memory_kills() override { return kills_seen_ = process_->memory_kills(); }

 private:
  enum Key : std::uint32_t { kLink = 1, kOut = 2, kErr = 4, kEnd = 8 };
  struct Pipe {
    Key key;
    bool is_stderr;
    int fd = -1;
    bool open = true;
  };

  void watch(int fd, Key key);
  void ignore(int fd) { epoll_ctl(any_.native_handle(), EPOLL_CTL_DEL, fd, nullptr); }
  std::uint32_t readable();
  bool fill();
  std::size_t link_holds() const;
  void read_link(std::size_t size);
  std::size_t read_pipe(Pipe& pipe);
  void drain(std::uint32_t ready);
  std::optional<KernelEvent> held();
  bool send_some(std::string_view& bytes);
  awaitable<void> send_rest(std::string_view bytes);

  asio::any_io_executor executor_;
  std::shared_ptr<Process> process_;
  std::uint64_t memory_limit_;
  asio::posix::stream_descriptor any_;
  std::string buffer_;

  std::array<Pipe, 2> pipes_{Pipe{kOut, false}, Pipe{kErr, true}};
  std::deque<StreamBytes> pieces_;  // read, and to be given out before the frames
  FrameReader frames_;
  bool broken_ = false;  // a Violation was given out
  bool closed_ = false;  // nothing more comes over the link
  bool killed_ = false;
  int burst_ = 0;
  std::uint64_t kills_seen_ = 0;
};

void LocalChannel::watch(int fd, Key key) {
  epoll_event event{.events = EPOLLIN, .data = {.u32 = key}};
  if (epoll_ctl(any_.native_handle(), EPOLL_CTL_ADD, fd, &event) < 0) throw last_error("epoll_ctl");
}

std::uint32_t LocalChannel::readable() {
  epoll_event events[4];
  int count = epoll_wait(any_.native_handle(), events, 4, 0);
  std::uint32_t ready = 0;
  for (int i = 0; i < count; ++i) ready |= events[i].data.u32;
  return ready;
}

// Takes in what is there; false when nothing was.
bool LocalChannel::fill() {
  std::uint32_t ready = readable();
  if (ready == 0) return false;
  if (ready & (kLink | kEnd)) {
    // First how much the link holds, then the pipes, then no more than that from the link: so the
    // pipes are empty of what was written before any of these frames, and a kernel that sees its
    // frame taken knows that what it writes next comes after it.
    std::size_t size = link_holds();
    drain(readable());
    read_link(size);
    if (size == 0 && (ready & kEnd)) closed_ = true;
  } else {
    for (Pipe& pipe : pipes_)
      if (ready & pipe.key) read_pipe(pipe);
  }
  return true;
}

std::size_t LocalChannel::link_holds() const {
  int size = 0;
  if (ioctl(process_->link.get(), FIONREAD, &size) < 0) return 0;
  return std::min<std::size_t>(size, buffer_.size());
}

void LocalChannel::read_link(std::size_t size) {
  // Zero bytes and ready means the end, which only a read of more than zero can tell.
  std::size_t wanted = std::max<std::size_t>(size, 1);
  ssize_t got = recv(process_->link.get(), buffer_.data(), wanted, MSG_DONTWAIT);
  if (got > 0) {
    frames_.append(std::string_view(buffer_.data(), got));
  } else if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
    closed_ = true;
    ignore(process_->link.get());
  }
}

std::size_t LocalChannel::read_pipe(Pipe& pipe) {
  if (!pipe.open) return 0;
  ssize_t size = read(pipe.fd, buffer_.data(), buffer_.size());
  if (size > 0) {
    pieces_.push_back({pipe.is_stderr, std::string(buffer_.data(), size)});
    return size;
  }
  if (size == 0 || (errno != EAGAIN && errno != EINTR)) {
    pipe.open = false;
    ignore(pipe.fd);
  }
  return 0;
}

// A pipe holds at most its capacity: having read that much, all that was written before we started
// is here, even if a child process goes on writing for ever.
void LocalChannel::drain(std::uint32_t ready) {
  for (Pipe& pipe : pipes_) {
    if (!(ready & pipe.key)) continue;
    std::size_t taken = 0;
    while (std::size_t size = read_pipe(pipe)) {
      taken += size;
      if (size < buffer_.size() && taken < kPiece) continue;
      if (taken >= static_cast<std::size_t>(std::max(fcntl(pipe.fd, F_GETPIPE_SZ), 0))) break;
    }
  }
}

// What can be given out without reading on.
std::optional<KernelEvent> LocalChannel::held() {
  if (!pieces_.empty()) {
    StreamBytes piece = std::move(pieces_.front());
    pieces_.pop_front();
    return piece;
  }
  if (broken_) return Closed();
  if (auto frame = frames_.take()) {
    if (auto* violation = std::get_if<Violation>(&*frame)) {
      broken_ = true;
      return std::move(*violation);
    }
    return std::move(std::get<Frame>(*frame));
  }
  if (closed_) return Closed();
  return std::nullopt;
}

std::optional<KernelEvent> LocalChannel::poll() {
  for (;;) {
    if (auto event = held()) return event;
    if (!fill()) return std::nullopt;
  }
}

awaitable<KernelEvent> LocalChannel::next() {
  if (++burst_ > kBurst) {
    burst_ = 0;
    co_await asio::post(executor_, asio::use_awaitable);
  }
  for (;;) {
    if (auto event = held()) co_return std::move(*event);
    if (fill()) continue;
    burst_ = 0;
    co_await wait_for(any_, asio::posix::descriptor_base::wait_read);
  }
}

// Sends what the socket takes now; false when it is full.
bool LocalChannel::send_some(std::string_view& bytes) {
  while (!bytes.empty()) {
    ssize_t size =
        ::send(process_->link.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (size >= 0)
      bytes.remove_prefix(size);
    else if (errno == EAGAIN)
      return false;
    else if (errno != EINTR)
      throw last_error("send to the kernel");
  }
  return true;
}

awaitable<void> LocalChannel::send_rest(std::string_view bytes) {
  int copy = fcntl(process_->link.get(), F_DUPFD_CLOEXEC, 0);
  asio::posix::stream_descriptor writable = own(executor_, copy, "dup");
  while (!send_some(bytes)) co_await wait_for(writable, asio::posix::descriptor_base::wait_write);
}

awaitable<void> LocalChannel::send(boost::json::object header, std::string payload) {
  std::string bytes = encode_frame(header, payload);
  std::string_view left = bytes;
  if (send_some(left)) co_return;
  auto rest = send_rest(left);
  bool in_time = co_await async::within(kSendLimit, std::move(rest));
  if (!in_time) throw boost::system::system_error(asio::error::timed_out, "send to the kernel");
}

awaitable<Exit> LocalChannel::exit() {
  int copy = fcntl(process_->pidfd.get(), F_DUPFD_CLOEXEC, 0);
  asio::posix::stream_descriptor end = own(executor_, copy, "dup");
  auto waiting = wait_for(end, asio::posix::descriptor_base::wait_read);
  if (killed_) {
    bool in_time = co_await async::within(kExitLimit, std::move(waiting));
    if (!in_time) {
      Exit unknown;
      unknown.cause = "killed, and not gone after 5 s";
      co_return unknown;
    }
  } else {
    co_await std::move(waiting);
  }
  bool by_memory = process_->memory_kills() > kills_seen_;
  co_return describe_exit(process_->wait_status(), by_memory, memory_limit_);
}

}  // namespace

std::unique_ptr<KernelChannel> make_kernel_channel(asio::any_io_executor executor,
                                                   std::shared_ptr<Process> process,
                                                   std::uint64_t memory_limit) {
  return std::make_unique<LocalChannel>(executor, std::move(process), memory_limit);
}

}  // namespace sandbox::local
