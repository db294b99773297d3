// The half of Connection that writes responses.

#include <sys/socket.h>

#include <boost/asio/write.hpp>
#include <boost/beast/http/status.hpp>
#include <charconv>
#include <ctime>

#include "transport/http/connection.hpp"

namespace transport::http {

namespace asio = boost::asio;
using std::chrono::milliseconds;

namespace {

// While all waiting output together is more, a client has little time to take its own.
constexpr std::size_t kUnsentPlenty = 64 << 20;
constexpr milliseconds kUnsentHurry{2000};

// RFC 9110, section 6.6.1.
std::string date() {
  char text[40];
  std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  std::size_t size = std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return std::string(text, size);
}

// A value never ends its header, whatever it was made from.
std::string one_line(std::string value) {
  for (char& c : value)
    if (c == '\r' || c == '\n' || c == '\0') c = ' ';
  return value;
}

// What a response says of its length itself; its body then needs no chunks.
std::optional<std::uint64_t> told_length(const Response& response) {
  for (const auto& [name, value] : response.headers) {
    std::uint64_t length = 0;
    const char* last = value.data() + value.size();
    bool same = !NameLess()(name, "Content-Length") && !NameLess()("Content-Length", name);
    if (same && std::from_chars(value.data(), last, length).ptr == last) return length;
  }
  return std::nullopt;
}

bool has_no_body(int status) { return status < 200 || status == 204 || status == 304; }

}  // namespace

std::string Connection::head_of(const Response& response, std::optional<std::size_t> length) {
  auto known = boost::beast::http::int_to_status(static_cast<unsigned>(response.status));
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
  head += std::string(boost::beast::http::obsolete_reason(known)) + "\r\n";
  auto add = [&head](const std::string& name, const std::string& value) {
    head += name + ": " + one_line(value) + "\r\n";
  };
  add("Date", date());
  for (const auto& [name, value] : response.headers) add(name, value);
  for (const auto& [name, value] : request_.response_headers) add(name, value);
  if (length && !has_no_body(response.status)) add("Content-Length", std::to_string(*length));
  if (!length && !left_ && !parser_->http_1_0()) add("Transfer-Encoding", "chunked");
  if (!keep_ || service_.stopping) add("Connection", "close");
  return head + "\r\n";
}

awaitable<void> Connection::reply(Response response) {
  if (stage_ != Stage::none) co_return;
  stage_ = Stage::over;
  skip_body();
  std::string head = head_of(response, response.body.size());
  if (request_.method == "HEAD" || has_no_body(response.status)) response.body.clear();
  Parts parts = {head, response.body, ""};
  co_await send(parts);
}

bool Connection::may_stream() const {
  auto theirs = service_.streams_of.find(request_.principal);
  return service_.counters.streams < service_.limits.streams &&
         (theirs == service_.streams_of.end() ||
          theirs->second < service_.limits.streams_per_principal);
}

void Connection::count_stream(int change) {
  service_.counters.streams += change;
  auto theirs = service_.streams_of.try_emplace(request_.principal, 0).first;
  theirs->second += change;
  if (theirs->second == 0) service_.streams_of.erase(theirs);
}

awaitable<void> Connection::begin(Response head) {
  if (stage_ != Stage::none) co_return;
  if (!may_stream()) {
    ++service_.counters.dropped;
    keep_ = false;
    Response busy = plain(503, "Too many streams are open. Close some, or try again later.");
    busy.headers.emplace_back("Retry-After", "5");
    co_await reply(std::move(busy));
    set_gone();
    co_return;
  }
  skip_body();
  left_ = told_length(head);
  bool is_head = request_.method == "HEAD";
  if (!left_ && (parser_->http_1_0() || is_head)) keep_ = false;
  std::string text = head_of(head, std::nullopt);
  Parts parts = {text, "", ""};
  if (is_head) {
    stage_ = Stage::over;
    co_await send(parts);
    if (!left_) set_gone();
    co_return;
  }
  stage_ = Stage::streaming;
  count_stream(+1);
  writing_.emplace(socket_.get_executor());
  co_await send(parts);
  if (!head.body.empty()) co_await write(head.body);
}

awaitable<bool> Connection::write(std::string_view part) {
  if (stage_ != Stage::streaming || dropped_) co_return false;
  if (part.empty()) co_return true;  // as a chunk it would be the last one
  auto turn = co_await writing_->take();
  if (left_) part = part.substr(0, *left_);
  if (left_) *left_ -= part.size();
  char size[32];
  std::snprintf(size, sizeof(size), "%zx\r\n", part.size());
  Parts chunk = {size, part, "\r\n"};
  Parts bare = {part, "", ""};
  if (parser_->http_1_0() || left_) chunk = bare;
  bool sent = co_await send(chunk);
  co_return sent;
}

awaitable<void> Connection::end() {
  if (stage_ != Stage::streaming) co_return;
  auto turn = co_await writing_->take();
  stage_ = Stage::over;
  count_stream(-1);
  if (left_ && *left_ > 0) keep_ = false;
  Parts last = {parser_->http_1_0() || left_ ? "" : "0\r\n\r\n", "", ""};
  co_await send(last);
}

// What the system takes at once, which is nearly always all, costs no waiting.
awaitable<bool> Connection::send(Parts parts) {
  if (dropped_) co_return false;
  std::array<asio::const_buffer, 3> buffers;
  for (std::size_t i = 0; i < parts.size(); ++i) buffers[i] = asio::buffer(parts[i]);
  std::size_t total = asio::buffer_size(buffers);
  if (total == 0) co_return true;
  boost::system::error_code failed;
  std::size_t sent = socket_.write_some(buffers, failed);
  service_.counters.bytes_out += sent;
  if (failed && failed != asio::error::would_block) drop();
  if (dropped_ || sent == total) co_return !dropped_;
  for (std::string_view& part : parts) {
    std::size_t done = std::min(sent, part.size());
    part.remove_prefix(done);
    sent -= done;
  }
  co_await send_rest(parts);
  co_return !dropped_;
}

awaitable<void> Connection::send_rest(Parts parts) {
  struct Unfinished {  // also when cancelled: half a message makes what follows unreadable
    Connection& connection;
    std::size_t size;
    bool finished = false;
    Unfinished(Connection& connection, std::size_t size) : connection(connection), size(size) {
      connection.service_.unsent_bytes += size;
    }
    ~Unfinished() {
      connection.service_.unsent_bytes -= size;
      if (!finished) connection.drop();
    }
  } unfinished(*this, parts[0].size() + parts[1].size() + parts[2].size());
  auto time = service_.limits.write_stall + milliseconds(unfinished.size / kSlowest);
  if (service_.unsent_bytes > kUnsentPlenty) time = kUnsentHurry;
  auto deadline = std::chrono::steady_clock::now() + time;
  auto written = co_await async::within(time, write_all(parts));
  unfinished.finished = written && *written == unfinished.size;
  bool late = std::chrono::steady_clock::now() >= deadline;
  if (!unfinished.finished && late) ++service_.counters.dropped;
}

awaitable<std::size_t> Connection::write_all(Parts parts) {
  std::array<asio::const_buffer, 3> buffers;
  for (std::size_t i = 0; i < parts.size(); ++i) buffers[i] = asio::buffer(parts[i]);
  auto token = asio::as_tuple(asio::use_awaitable);
  auto [failed, size] = co_await asio::async_write(socket_, buffers, token);
  (void)failed;
  service_.counters.bytes_out += size;
  co_return size;
}

// What the system still holds for this client goes with the connection.
void Connection::drop() {
  if (dropped_) return;
  dropped_ = true;
  keep_ = false;
  boost::system::error_code ignored;
  socket_.set_option(asio::socket_base::linger(true, 0), ignored);
  socket_.cancel(ignored);
  set_gone();
}

}  // namespace transport::http
