#pragma once

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <future>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "async/task_group.hpp"
#include "transport/http/listener.hpp"

// A listener on a thread of its own.
class LiveListener {
 public:
  explicit LiveListener(transport::http::Handler handler,
                        transport::http::ListenerLimits limits = {})
      : listener_(io_.get_executor(), "127.0.0.1", 0, std::move(handler), limits),
        tasks_(io_.get_executor()) {
    tasks_.spawn(listener_.serve());
    thread_ = std::thread([this] { io_.run(); });
  }
  ~LiveListener() {
    boost::asio::post(io_, [this] { tasks_.cancel(); });
    thread_.join();
  }

  std::uint16_t port() const { return listener_.port(); }

  void stop(std::chrono::milliseconds grace) {
    boost::asio::post(io_, [this, grace] { listener_.stop(grace); });
  }
  // Returns once it has ended by itself.
  void join() {
    thread_.join();
    thread_ = std::thread([this] { io_.restart(), io_.run(); });
  }

  transport::http::Counters counters() {
    std::promise<transport::http::Counters> result;
    boost::asio::post(io_, [&] { result.set_value(listener_.counters()); });
    return result.get_future().get();
  }

 private:
  boost::asio::io_context io_{1};
  transport::http::Listener listener_;
  async::TaskGroup tasks_;
  std::thread thread_;
};

// A client that sends and expects bytes as they are. No wait is longer than thirty seconds.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port, int receive_buffer = 0) {
    fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    timeval limit{30, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    int at_once = 1;
    setsockopt(fd_, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
    if (receive_buffer)
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      throw std::system_error(errno, std::system_category(), "connect");
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() { close(); }

  // False when the other side does not take it all.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t size = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (size <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(size));
    }
    return true;
  }
  void half_close() { shutdown(fd_, SHUT_WR); }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  void read_byte() {
    char byte;
    (void)!recv(fd_, &byte, 1, MSG_DONTWAIT);
  }
  // What comes until the text does, the connection ends, or nothing more comes.
  std::string read_until(std::string_view text) {
    std::string got;
    while (got.find(text) == got.npos && read_into(got)) continue;
    return got;
  }
  // What comes until the connection ends; " (still open)" is added when it does not.
  std::string read_all() {
    std::string got;
    while (read_into(got)) continue;
    return open_ ? got + " (still open)" : got;
  }

 private:
  bool read_into(std::string& got) {
    char chunk[65536];
    ssize_t size = recv(fd_, chunk, sizeof chunk, 0);
    if (size > 0) got.append(chunk, static_cast<std::size_t>(size));
    if (size == 0 || (size < 0 && errno == ECONNRESET)) open_ = false;
    return size > 0;
  }

  int fd_ = -1;
  bool open_ = true;
};
