#pragma once

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "async/async.hpp"
#include "async/task_group.hpp"
#include "transport/http/exchange.hpp"
#include "transport/http/listener.hpp"
#include "transport/http/request_parser.hpp"

namespace transport::http {

class Connection;

// What the connections of one listener share.
struct Service {
  Handler handler;
  ListenerLimits limits;
  Refused refused;  // may be empty
  Counters counters;
  bool stopping = false;
  std::size_t unsent_bytes = 0;  // of writes that wait for their clients
  std::set<Connection*> connections;
  std::map<std::string, std::size_t> per_address;
  std::map<std::string, std::size_t> streams_of;  // by principal
};

// One connection: its requests, one after the other, each an Exchange with the handler. Waits
// without buffers: a connection that is idle, or whose handler waits, holds no bytes of its client.
class Connection final : public Exchange {
 public:
  // How slow a client may be on the whole, in either direction, in bytes a millisecond (64 kbit/s).
  // A limit on silence alone would let a byte every now and then hold everything for ever.
  static constexpr std::size_t kSlowest = 8;

  // `service` outlives it.
  Connection(boost::asio::ip::tcp::socket socket, std::string remote, Service& service);
  ~Connection() override;

  // Serves until either side ends it. Never throws for what a client does.
  awaitable<void> serve();
  // Ends it if it waits for a request; else it ends with the response it is at.
  void stop();

  const Request& request() const override { return request_; }
  Request& request() override { return request_; }
  awaitable<std::optional<std::string>> body(std::size_t limit) override;
  int body_failure() const override { return body_failure_; }
  awaitable<std::size_t> read(std::span<char> buffer) override;
  awaitable<void> reply(Response response) override;
  awaitable<void> begin(Response head) override;
  awaitable<bool> write(std::string_view part) override;
  awaitable<void> end() override;
  awaitable<void> gone() override;
  bool is_gone() const override { return gone_; }

 private:
  enum class Got { bytes, end, late };
  enum class Stage { none, streaming, over };
  using Parts = std::array<std::string_view, 3>;

  awaitable<void> requests();
  awaitable<bool> next_request();
  awaitable<bool> idle();
  awaitable<void> handle();
  void count_request();
  awaitable<void> refuse(int status, std::string why);
  awaitable<void> linger();
  void finish_request();
  bool may_stream() const;
  void count_stream(int change);

  bool receive(boost::system::error_code& failed);
  awaitable<Got> fill(std::chrono::milliseconds limit);
  awaitable<void> readable();
  // 0, or the status of what is wrong with the body.
  awaitable<int> read_body(std::span<char> into, std::size_t& size);
  void skip_body();

  std::string head_of(const Response& response, std::optional<std::size_t> length);
  awaitable<bool> send(Parts parts);
  awaitable<void> send_rest(Parts parts);
  awaitable<std::size_t> write_all(Parts parts);
  void drop();
  awaitable<void> watch();
  void set_gone();

  boost::asio::ip::tcp::socket socket_;
  std::string remote_;
  Service& service_;
  std::string in_;  // read, not yet taken
  std::optional<RequestParser> parser_;
  Request request_;
  async::TaskGroup watching_;
  async::Changed gone_changed_;
  std::optional<async::Turn> writing_;  // while streaming
  std::optional<std::uint64_t> left_;   // to stream, where the length was told
  Stage stage_ = Stage::none;           // of the response
  int body_failure_ = 0;                // 0: none so far
  std::uint64_t body_bytes_ = 0;
  std::chrono::steady_clock::duration body_waited_{};
  bool idle_ = false;
  bool continued_ = false;
  bool keep_ = true;      // another request may follow
  bool lingers_ = false;  // the client may still be sending what nobody reads
  bool gone_ = false;
  bool dropped_ = false;  // nothing can be sent any more
};

}  // namespace transport::http
