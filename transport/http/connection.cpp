#include "transport/http/connection.hpp"

#include <poll.h>
#include <spdlog/spdlog.h>

#include <algorithm>

namespace transport::http {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

namespace {

constexpr std::size_t kReadAtOnce = 16 << 10;
constexpr milliseconds kLookInterval{200};
constexpr milliseconds kLinger{2000};
constexpr std::size_t kSentAhead = 32 << 10;  // behind a request that is being waited for
constexpr std::size_t kSkipAtMost = 64 << 10;

milliseconds time_for(std::uint64_t bytes) { return milliseconds(bytes / Connection::kSlowest); }

}  // namespace

Connection::Connection(asio::ip::tcp::socket socket, std::string remote, Service& service)
    : socket_(std::move(socket)),
      remote_(std::move(remote)),
      service_(service),
      watching_(socket_.get_executor()),
      gone_changed_(socket_.get_executor()) {
  service_.connections.insert(this);
  ++service_.counters.open;
  ++service_.per_address[remote_];
}

Connection::~Connection() {
  service_.connections.erase(this);
  --service_.counters.open;
  auto address = service_.per_address.find(remote_);
  if (--address->second == 0) service_.per_address.erase(address);
}

awaitable<void> Connection::serve() {
  bool failed = false;
  try {
    co_await requests();
  } catch (const std::exception&) {
    failed = true;  // cancelled: a failure of the connection is a value everywhere below
  }
  co_await asio::this_coro::throw_if_cancelled(false);
  watching_.cancel();
  co_await watching_.join();
  if (failed) finish_request();
  boost::system::error_code ignored;
  socket_.close(ignored);
}

void Connection::stop() {
  // Reading ends; what has arrived already is still served.
  boost::system::error_code ignored;
  if (idle_) socket_.shutdown(asio::ip::tcp::socket::shutdown_receive, ignored);
}

awaitable<void> Connection::requests() {
  while (keep_) {
    bool came = co_await next_request();
    if (!came) break;
    co_await handle();
    finish_request();
    // Nobody shall keep the loop to himself by sending requests in a row.
    co_await asio::post(socket_.get_executor(), asio::use_awaitable);
  }
  if (lingers_ && !dropped_) co_await linger();
}

// Whether the connection came to life again, within its time.
awaitable<bool> Connection::idle() {
  in_ = std::string();
  if (service_.stopping) co_return false;
  idle_ = true;
  auto got = co_await fill(service_.limits.idle_limit);
  idle_ = false;
  co_return got == Got::bytes;
}

awaitable<bool> Connection::next_request() {
  if (in_.empty()) {
    bool awake = co_await idle();
    if (!awake) co_return false;
  }
  request_.remote = remote_;
  parser_.emplace(service_.limits.header_bytes);
  auto deadline = Clock::now() + service_.limits.header_limit;
  for (;;) {
    auto state = parser_->head(in_, request_);
    if (state == RequestParser::State::done) break;
    if (state == RequestParser::State::bad) {
      co_await refuse(parser_->status(), parser_->why());
      co_return false;
    }
    auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    auto got = co_await fill(std::max(left, milliseconds(0)));
    if (got == Got::end) co_return false;
    if (got == Got::bytes) continue;
    ++service_.counters.dropped;
    co_await refuse(408, "The request's head did not arrive in time.");
    co_return false;
  }
  count_request();
  keep_ = parser_->keep_alive();
  co_return true;
}

awaitable<void> Connection::handle() {
  std::string failure = "the handler did not answer";
  try {
    co_await service_.handler(*this);
    if (stage_ == Stage::over) failure.clear();
  } catch (const std::exception& why) {
    failure = why.what();
  }
  auto cancellation = co_await asio::this_coro::cancellation_state;
  if (cancellation.cancelled() != asio::cancellation_type::none) failure.clear();
  if (!failure.empty()) {
    keep_ = false;
    bool ours = body_failure_ == 0 && !gone_ && !dropped_;
    if (ours) spdlog::error("request {}: {}", request_.id, failure);
    auto sorry = ours ? plain(500, "This request failed inside the server; its log says why.")
                      : plain(body_failure_ ? body_failure_ : 400, "The body did not arrive.");
    if (stage_ == Stage::none) co_await reply(std::move(sorry));
  }
  watching_.cancel();
  co_await watching_.join();
}

void Connection::finish_request() {
  if (stage_ == Stage::streaming) {
    count_stream(-1);
    keep_ = false;  // its end is missing, and the client shall see that
  }
  if (service_.stopping) keep_ = false;
  writing_.reset();
  left_.reset();
  parser_.reset();
  request_ = Request();
  stage_ = Stage::none;
  continued_ = false;
  body_failure_ = 0;
  body_bytes_ = 0;
  body_waited_ = {};
}

void Connection::count_request() {
  std::uint64_t number = ++service_.counters.requests;
  request_.id = "r" + std::to_string(number);
}

// For what cannot be a request: no handler sees it.
awaitable<void> Connection::refuse(int status, std::string why) {
  keep_ = false;
  lingers_ = true;
  count_request();
  if (service_.refused) service_.refused(request_, status);
  Response response = plain(status, std::move(why));
  std::string head = head_of(response, response.body.size());
  Parts parts = {head, response.body, ""};
  co_await send(parts);
  if (!dropped_) co_await linger();
}

// Closing a socket with unread bytes resets the connection, which would take the response with it.
awaitable<void> Connection::linger() {
  lingers_ = false;
  boost::system::error_code ignored;
  socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
  auto deadline = Clock::now() + kLinger;
  for (Got got = Got::bytes; got == Got::bytes;) {
    in_.clear();
    auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) break;
    got = co_await fill(left);
    co_await asio::post(socket_.get_executor(), asio::use_awaitable);
  }
}

// ---- reading ----

// Appends what has arrived; false when nothing has. `failed` stays clear only then and on success.
bool Connection::receive(boost::system::error_code& failed) {
  char chunk[kReadAtOnce];
  std::size_t size = socket_.read_some(asio::buffer(chunk), failed);
  if (failed == asio::error::would_block) failed.clear();
  in_.append(chunk, size);
  service_.counters.bytes_in += size;
  return size > 0;
}

awaitable<void> Connection::readable() {
  co_await socket_.async_wait(asio::ip::tcp::socket::wait_read, asio::use_awaitable);
}

awaitable<Connection::Got> Connection::fill(milliseconds limit) {
  auto deadline = Clock::now() + limit;
  for (;;) {
    boost::system::error_code failed;
    if (receive(failed)) co_return Got::bytes;
    if (failed) co_return Got::end;
    auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) co_return Got::late;
    bool arrived = co_await async::within(left, readable());
    if (!arrived) co_return Got::late;
  }
}

awaitable<int> Connection::read_body(std::span<char> into, std::size_t& size) {
  constexpr int kMalformed = 400, kLate = 408;
  size = 0;
  if (into.empty() || parser_->body_done()) co_return 0;
  if (parser_->expects_continue() && !continued_ && in_.empty()) {
    continued_ = true;
    Parts go_on = {"HTTP/1.1 100 Continue\r\n\r\n", "", ""};
    co_await send(go_on);
  }
  for (;;) {
    auto state = parser_->body(in_, into, size);
    body_bytes_ += size;
    if (size > 0 || state == RequestParser::State::done) co_return 0;
    if (state == RequestParser::State::bad) co_return kMalformed;
    auto stall = service_.limits.body_stall;
    auto waited = std::chrono::duration_cast<milliseconds>(body_waited_);
    auto asked = Clock::now();
    auto got = co_await fill(std::min(stall, stall + time_for(body_bytes_) - waited));
    body_waited_ += Clock::now() - asked;
    if (got == Got::late) ++service_.counters.dropped;
    if (got == Got::late) co_return kLate;
    if (got == Got::end) set_gone();
    if (got == Got::end) co_return kMalformed;
  }
}

awaitable<std::size_t> Connection::read(std::span<char> buffer) {
  std::size_t size = 0;
  body_failure_ = co_await read_body(buffer, size);
  if (body_failure_ == 0) co_return size;
  keep_ = false;
  namespace errors = boost::system::errc;
  auto code = body_failure_ == 408 ? errors::timed_out : errors::protocol_error;
  throw boost::system::system_error(errors::make_error_code(code));
}

awaitable<std::optional<std::string>> Connection::body(std::size_t limit) {
  auto announced = parser_->content_length();
  std::string all;
  body_failure_ = announced && *announced > limit ? 413 : 0;
  while (body_failure_ == 0 && !parser_->body_done()) {
    std::size_t before = all.size(), size = 0;
    // One byte more than may be, to see whether there is one.
    all.resize(std::min(before + kReadAtOnce, limit + 1));
    std::span<char> part(all.data() + before, all.size() - before);
    body_failure_ = co_await read_body(part, size);
    all.resize(before + size);
    if (all.size() > limit) body_failure_ = 413;
  }
  if (body_failure_ == 0) co_return all;
  keep_ = false;
  co_return std::nullopt;
}

// A small body that nobody wanted and that is here already need not cost the connection.
void Connection::skip_body() {
  char sink[4096];
  std::size_t size = 0;
  boost::system::error_code failed;
  while (!parser_->body_done() && body_failure_ != 400 && body_bytes_ < kSkipAtMost && !failed) {
    bool bad = parser_->body(in_, sink, size) == RequestParser::State::bad;
    body_bytes_ += size;
    if (bad || (size == 0 && !parser_->body_done() && !receive(failed))) break;
  }
  if (parser_->body_done()) return;
  keep_ = false;
  lingers_ = true;
}

// ---- the client's end ----

void Connection::set_gone() {
  gone_ = true;
  gone_changed_.notify();
}

// Looks for the end of the input behind whatever the client has sent ahead, which stays unread in
// the system's buffer: a request in flight is the only one that costs us memory. Behind a buffer
// that is full the end could not be seen.
awaitable<void> Connection::watch() {
  for (;;) {
    co_await readable();
    pollfd state{socket_.native_handle(), POLLRDHUP, 0};
    if (::poll(&state, 1, 0) == 1) break;
    boost::system::error_code failed;
    if (socket_.available(failed) > kSentAhead) {
      ++service_.counters.dropped;
      drop();
    }
    co_await async::sleep_for(kLookInterval);
  }
  set_gone();
}

awaitable<void> Connection::gone() {
  if (!gone_ && watching_.size() == 0) watching_.spawn(watch());
  while (!gone_) co_await gone_changed_.wait();
}

}  // namespace transport::http
