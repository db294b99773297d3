#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <functional>
#include <string>

#include "mcp/peer.hpp"

namespace transport {

// Writes messages as lines, in the order they were queued. Unread bytes stay within `cap` and one
// message; whoever sends more waits.
class LineOutbox final : public mcp::Outbox {
 public:
  // `on_gone` is called once, when the other side turns out to have closed.
  LineOutbox(boost::asio::posix::stream_descriptor& out, std::size_t cap,
             std::function<void()> on_gone);

  mcp::awaitable<void> send(boost::json::value message) override;
  bool offer(boost::json::object message) override;
  bool carries_requests() const override { return true; }

  // Whether a message can be queued without waiting. room() returns once it can.
  bool has_room() const { return gone_ || unread() <= cap_; }
  mcp::awaitable<void> room();
  // Returns once everything queued is written, or the client is gone.
  mcp::awaitable<void> flushed();

  // Writes what is queued until cancelled or the client is gone. The only writer of the stream.
  mcp::awaitable<void> run();

  bool gone() const { return gone_; }

 private:
  std::size_t unread() const { return queued_.size() + writing_.size() - written_; }
  void queue(const std::string& line);
  void lose_client();

  boost::asio::posix::stream_descriptor& out_;
  std::size_t cap_;
  std::function<void()> on_gone_;
  async::Changed queued_some_;
  async::Changed wrote_some_;
  std::string queued_;
  std::string writing_;
  std::size_t written_ = 0;  // of writing_
  bool gone_ = false;
};

}  // namespace transport
