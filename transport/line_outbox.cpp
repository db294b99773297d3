#include "transport/line_outbox.hpp"

#include <boost/asio/write.hpp>

namespace transport {

namespace asio = boost::asio;
namespace json = boost::json;

namespace {

// Progress and log lines leave most of the room to answers.
constexpr std::size_t kOfferShare = 8;
// A buffer that has grown beyond this for one burst is not kept.
constexpr std::size_t kKeptCapacity = std::size_t{1} << 20;

std::string to_line(const json::value& message) { return json::serialize(message) + "\n"; }

}  // namespace

LineOutbox::LineOutbox(asio::posix::stream_descriptor& out, std::size_t cap,
                       std::function<void()> on_gone)
    : out_(out),
      cap_(cap),
      on_gone_(std::move(on_gone)),
      queued_some_(out.get_executor()),
      wrote_some_(out.get_executor()) {}

mcp::awaitable<void> LineOutbox::send(json::value message) {
  std::string line = to_line(message);
  message = nullptr;  // while it waits, the line is all there is of it
  co_await room();
  queue(line);
}

bool LineOutbox::offer(json::object message) {
  if (gone_ || unread() > cap_ / kOfferShare) return false;
  queue(to_line(json::value(std::move(message))));
  return true;
}

mcp::awaitable<void> LineOutbox::room() {
  while (!has_room()) co_await wrote_some_.wait();
}

mcp::awaitable<void> LineOutbox::flushed() {
  while (!gone_ && unread() > 0) co_await wrote_some_.wait();
}

mcp::awaitable<void> LineOutbox::run() {
  auto token = asio::as_tuple(asio::use_awaitable);
  for (;;) {
    while (queued_.empty()) co_await queued_some_.wait();
    std::swap(queued_, writing_);
    while (written_ < writing_.size()) {
      auto rest = asio::buffer(writing_) + written_;
      auto [failed, size] = co_await out_.async_write_some(rest, token);
      if (failed) {
        lose_client();
        co_return;
      }
      written_ += size;
      wrote_some_.notify();
    }
    writing_.clear();
    written_ = 0;
    if (writing_.capacity() > kKeptCapacity) writing_ = {};
  }
}

void LineOutbox::queue(const std::string& line) {
  if (gone_) return;
  queued_ += line;
  queued_some_.notify();
}

void LineOutbox::lose_client() {
  gone_ = true;
  queued_ = {};
  writing_ = {};
  written_ = 0;
  wrote_some_.notify();
  on_gone_();
}

}  // namespace transport
