#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "mcp/peer.hpp"
#include "transport/http/event_log.hpp"

namespace transport::http {

// Everything that is said on behalf of one request (or of one GET stream, or of one HTTP+SSE
// connection), on its way to the response that carries it. It outlives that response where the
// client may come back for the rest. Belongs to the loop's thread.
class EventStream final : public mcp::Outbox {
 public:
  struct Options {
    std::string name;           // what event ids begin with; unique over all streams and restarts
    std::size_t unread = 0;     // bytes; who sends more waits for the reader
    std::size_t kept = 0;       // bytes; EventLog
    bool answers_only = false;  // for a client that accepts nothing but one JSON body
    bool can_hang_up = false;   // the client comes back when the connection ends early
    bool carries_requests = false;
  };
  EventStream(boost::asio::any_io_executor executor, Options options);

  // The elements of a batch's answer become messages of their own: that is how clients read events.
  mcp::awaitable<void> send(boost::json::value message) override;
  bool offer(boost::json::object message) override;
  bool carries_requests() const override { return options_.carries_requests; }
  void hang_up() override;

  // Nothing follows.
  void finish();
  // Nobody will read any more: what is queued is dropped, and senders do not wait.
  void close();

  const std::string& name() const { return options_.name; }
  bool ended() const { return ended_; }
  bool is_read() const { return log_.is_read(); }
  bool read_to_the_end() const { return ended_ && log_.unread() == 0; }
  std::size_t bytes() const { return log_.bytes(); }
  std::uint64_t last() const { return log_.last(); }

  // Whether its client has seen an event id, and so could ask for the rest.
  bool is_named() const { return is_named_; }
  void set_named() { is_named_ = true; }

  // How an answer came, once it has: as the elements of a batch, as an error with this code.
  bool is_batch() const { return is_batch_; }
  std::optional<std::int64_t> error() const { return error_; }

  // Who takes the messages out. There is one at a time: a new one takes over, since a client that
  // asks for a stream again has lost the connection it had, whether or not we have noticed.
  class Reader {
   public:
    // `after`: the number of the last event the client has got.
    explicit Reader(std::shared_ptr<EventStream> stream, std::uint64_t after = 0);
    ~Reader();  // what has not been read waits for the next reader, or goes if there can be none
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;

    // Returns once something is there to read, the end has come, or `limit` has passed.
    mcp::awaitable<void> wait(std::chrono::milliseconds limit);
    const Event* next() const;  // null if nothing is there; valid until the next wait
    void advance();
    bool at_end() const;  // nothing will come any more, for this reader

    EventStream& stream() const { return *stream_; }

   private:
    bool current() const { return stream_->turn_ == turn_; }

    std::shared_ptr<EventStream> stream_;
    std::uint64_t turn_;
  };

 private:
  bool must_wait() const;

  Options options_;
  EventLog log_;
  async::Changed queued_;
  async::Changed taken_;
  bool ended_ = false;
  bool closed_ = false;
  bool is_named_ = false;
  bool is_batch_ = false;
  std::optional<std::int64_t> error_;
  std::uint64_t turn_ = 0;  // of the reader that may read
};

}  // namespace transport::http
