#include "transport/stdio.hpp"

#include <fcntl.h>
#include <poll.h>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <optional>
#include <system_error>

#include "async/task_group.hpp"
#include "mcp/envelope.hpp"
#include "transport/line_outbox.hpp"
#include "transport/line_reader.hpp"
#include "transport/message_text.hpp"

namespace transport {

namespace asio = boost::asio;
namespace json = boost::json;

namespace {

// How often a client that does not read is looked after.
constexpr std::chrono::milliseconds kLookInterval{100};

int checked(int result, const char* what) {
  if (result < 0) throw std::system_error(errno, std::system_category(), what);
  return result;
}

// A descriptor of the caller's, made non-blocking for as long as this lives.
class Borrowed {
 public:
  Borrowed(asio::any_io_executor executor, int fd)
      : fd_(fd),
        flags_(checked(fcntl(fd, F_GETFL), "standard stream")),
        stream(executor, checked(fcntl(fd, F_DUPFD_CLOEXEC, 3), "standard stream")) {}
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;
  ~Borrowed() { fcntl(fd_, F_SETFL, flags_); }

  // Whether the other side has closed a pipe or socket, also while there is something left to read.
  bool hung_up() const {
    pollfd state{fd_, POLLRDHUP, 0};
    return poll(&state, 1, 0) == 1;
  }

 private:
  int fd_;
  int flags_;

 public:
  asio::posix::stream_descriptor stream;
};

// Whether somebody waits for an answer to this message: a batch counts as one request.
bool is_request(const json::value& message) {
  const json::object* object = message.if_object();
  return !object || (object->contains("id") && object->contains("method"));
}

json::object too_busy(const json::value& message) {
  json::object reply = mcp::Server::refusal(
      mcp::ErrorCode::internal_error,
      "too many requests in flight; send this one again when an earlier one has been answered");
  if (const json::object* object = message.if_object()) reply["id"] = mcp::readable_id(*object);
  return reply;
}

class Connection {
 public:
  Connection(mcp::Server& server, asio::any_io_executor executor, int in_fd, int out_fd,
             StdioLimits limits, std::function<void()> ending)
      : server_(server),
        limits_(limits),
        ending_(std::move(ending)),
        in_(executor, in_fd),
        out_(executor, out_fd),
        over_(executor, asio::steady_timer::time_point::max()),
        outbox_(out_.stream, limits.unread_bytes, [this] { end(); }),
        reading_(executor),
        requests_(executor),
        writing_(executor) {
    peer_.has_default_session = true;
  }

  mcp::awaitable<void> serve();

 private:
  mcp::awaitable<bool> client_reads();
  mcp::awaitable<void> read();
  mcp::awaitable<void> take(Line line);
  mcp::awaitable<void> refuse(mcp::ErrorCode code, std::string text);
  mcp::awaitable<void> answer(json::value message, std::size_t size, bool counts);
  mcp::awaitable<void> finish();

  // Also for a wait that has not begun: a cancelled timer would be waited for again.
  void end() { over_.expires_at(asio::steady_timer::time_point::min()); }

  mcp::Server& server_;
  StdioLimits limits_;
  std::function<void()> ending_;
  Borrowed in_;
  Borrowed out_;
  asio::steady_timer over_;
  LineOutbox outbox_;
  mcp::Peer peer_;
  bool stalled_ = false;
  std::size_t requests_in_flight_ = 0;
  std::size_t bytes_in_flight_ = 0;
  async::TaskGroup reading_;
  async::TaskGroup requests_;
  async::TaskGroup writing_;
};

mcp::awaitable<void> Connection::serve() {
  co_await asio::this_coro::throw_if_cancelled(false);  // even then it joins its tasks
  writing_.spawn(outbox_.run());
  writing_.spawn(server_.announce(peer_, outbox_));
  reading_.spawn(read());
  auto token = asio::as_tuple(asio::use_awaitable);
  auto [why] = co_await over_.async_wait(token);  // input ended, client gone, or cancelled: all one
  (void)why;
  if (ending_) ending_();
  reading_.cancel();
  co_await reading_.join();
  server_.end_subscriptions(&peer_);
  co_await async::within(limits_.grace, finish());
  requests_.cancel();
  co_await requests_.join();
  writing_.cancel();
  co_await writing_.join();
}

mcp::awaitable<void> Connection::finish() {
  if (outbox_.gone() || stalled_) co_return;
  co_await requests_.join();
  co_await outbox_.flushed();
}

// Waits while the client does not read its answers. False when it has closed its input meanwhile
// and does not read within the grace either: the end of the input is behind requests not yet read.
mcp::awaitable<bool> Connection::client_reads() {
  using Clock = std::chrono::steady_clock;
  std::optional<Clock::time_point> give_up;
  while (!outbox_.has_room()) {
    if (!give_up && in_.hung_up()) give_up = Clock::now() + limits_.grace;
    stalled_ = give_up && Clock::now() > *give_up;
    if (stalled_) co_return false;
    co_await async::within(kLookInterval, outbox_.room());
  }
  co_return true;
}

mcp::awaitable<void> Connection::read() {
  LineReader lines(in_.stream, limits_.line_bytes);
  while (co_await client_reads()) {
    Line line = co_await lines.next();
    if (line.kind == Line::Kind::end) break;
    if (line.kind == Line::Kind::too_long)
      co_await refuse(mcp::ErrorCode::invalid_request,
                      "message longer than " + std::to_string(limits_.line_bytes) + " bytes");
    else if (!is_blank(line.text))
      co_await take(std::move(line));
  }
  end();
}

mcp::awaitable<void> Connection::take(Line line) {
  std::size_t size = line.text.size();
  auto message = parse_message(std::move(line.text));
  if (!message) {
    // A message cut off by the end of the input has nobody who waits for its answer. A whole one is
    // served: by hand, `printf '{...}' | pykeep` is easily written.
    if (line.kind == Line::Kind::cut) co_return;
    co_await refuse(mcp::ErrorCode::parse_error,
                    "not a JSON text: one message a line, in UTF-8, nested at most 64 deep, of at "
                    "most 100,000 values");
    co_return;
  }
  bool counts = is_request(*message);
  bool busy = requests_in_flight_ >= limits_.requests_in_flight ||
              bytes_in_flight_ + size > limits_.request_bytes_in_flight;
  if (counts && busy) {
    json::object reply = too_busy(*message);
    co_await outbox_.send(json::value(std::move(reply)));
    co_return;
  }
  if (counts) {
    ++requests_in_flight_;
    bytes_in_flight_ += size;
  }
  requests_.spawn(answer(std::move(*message), size, counts));
  // Lets it run up to its first wait, so that what is answered at once never piles up.
  auto executor = co_await asio::this_coro::executor;
  co_await asio::post(executor, asio::use_awaitable);
}

mcp::awaitable<void> Connection::refuse(mcp::ErrorCode code, std::string text) {
  json::object reply = mcp::Server::refusal(code, text);
  co_await outbox_.send(json::value(std::move(reply)));
}

mcp::awaitable<void> Connection::answer(json::value message, std::size_t size, bool counts) {
  struct Done {
    Connection& connection;
    std::size_t size;
    bool counts;
    ~Done() {
      if (!counts) return;
      --connection.requests_in_flight_;
      connection.bytes_in_flight_ -= size;
    }
  } done{*this, size, counts};
  co_await server_.handle(std::move(message), peer_, outbox_);
}

}  // namespace

mcp::awaitable<void> serve_stdio(mcp::Server& server, int in_fd, int out_fd, StdioLimits limits,
                                 std::function<void()> ending) {
  auto executor = co_await asio::this_coro::executor;
  Connection connection(server, executor, in_fd, out_fd, limits, std::move(ending));
  co_await connection.serve();
}

}  // namespace transport
