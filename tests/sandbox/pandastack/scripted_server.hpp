#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "async/async.hpp"

namespace sandbox::pandastack {

// An event loop that runs one coroutine at a time to its end, and fails rather than hangs.
struct Loop {
  boost::asio::io_context io{1};

  template <class T>
  T run(async::awaitable<T> work) {
    auto result = boost::asio::co_spawn(io, std::move(work), boost::asio::use_future);
    io.restart();
    io.run_for(std::chrono::seconds(60));
    if (result.wait_for(std::chrono::seconds(0)) != std::future_status::ready)
      throw std::logic_error("the test did not end in time");
    return result.get();
  }
};

struct Seen {
  std::string method, target, body;
  std::map<std::string, std::string> headers;  // names in lower case

  bool has(const std::string& name) const { return headers.count(name) > 0; }
  std::string header(const std::string& name) const { return has(name) ? headers.at(name) : ""; }
};

// One accepted connection. No wait is longer than thirty seconds.
class Peer {
 public:
  explicit Peer(int fd) : fd_(fd) {
    timeval limit{30, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd_, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() { ::close(fd_); }

  // False when the client does not take it all.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t size = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (size <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(size));
      sent += static_cast<std::size_t>(size);
    }
    return true;
  }
  void end() { shutdown(fd_, SHUT_RDWR); }
  // With a reset, as when a process dies with unread input.
  void reset() {
    linger at_once{1, 0};
    setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    ended = true;
  }
  // Whether the client closes its side, within thirty seconds.
  bool is_left() {
    char byte;
    pollfd wait{fd_, POLLIN, 0};
    return poll(&wait, 1, 30000) == 1 && recv(fd_, &byte, 1, 0) <= 0;
  }
  // The next request; false at the end of the connection.
  bool receive(Seen& out, bool with_body = true);

  std::atomic<std::size_t> sent{0};
  bool ended = false;

 private:
  bool receive_more();

  int fd_;
  std::string unread_;
};

inline bool Peer::receive_more() {
  char chunk[65536];
  ssize_t size = recv(fd_, chunk, sizeof chunk, 0);
  if (size > 0) unread_.append(chunk, static_cast<std::size_t>(size));
  return size > 0;
}

inline bool Peer::receive(Seen& out, bool with_body) {
  std::size_t end;
  while ((end = unread_.find("\r\n\r\n")) == unread_.npos)
    if (!receive_more()) return false;
  std::string head = unread_.substr(0, end + 2);
  unread_.erase(0, end + 4);
  std::size_t line_end = head.find("\r\n"), blank = head.find(' ');
  out.method = head.substr(0, blank);
  out.target = head.substr(blank + 1, head.rfind(' ', line_end) - blank - 1);
  for (std::size_t at = line_end + 2; at < head.size(); at = head.find("\r\n", at) + 2) {
    std::string line = head.substr(at, head.find("\r\n", at) - at);
    std::size_t colon = line.find(": ");
    if (colon == line.npos) colon = line.find(':');
    std::string name = line.substr(0, colon);
    std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::tolower(c); });
    out.headers[name] = line.substr(std::min(colon + 2, line.size()));
  }
  if (!with_body) return true;
  std::size_t size = out.has("content-length") ? std::stoul(out.header("content-length")) : 0;
  while (unread_.size() < size)
    if (!receive_more()) return false;
  out.body = unread_.substr(0, size);
  unread_.erase(0, size);
  return true;
}

// A server on loopback that does what its test says, with every connection on a thread of its own.
class ScriptedServer {
 public:
  // What it does with a request, on the connection's thread; sets `peer.ended` to end it.
  using Handler = std::function<void(Peer& peer, const Seen& request)>;

  explicit ScriptedServer(Handler handler, bool reads_bodies = true)
      : handler_(std::move(handler)), reads_bodies_(reads_bodies) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_, any, size) != 0 || listen(listener_, 64) != 0 ||
        getsockname(listener_, any, &size) != 0)
      throw std::system_error(errno, std::system_category(), "listen");
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~ScriptedServer() {
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    {
      std::lock_guard lock(mutex_);
      for (Peer& peer : peers_) peer.end();
    }
    for (std::thread& thread : threads_) thread.join();
    close(listener_);
  }

  std::string url(const std::string& path = {}) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  int connections() const { return connections_; }
  std::vector<Seen> seen() const {
    std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  void accept_all() {
    for (;;) {
      int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      ++connections_;
      std::lock_guard lock(mutex_);
      Peer& peer = peers_.emplace_back(fd);
      threads_.emplace_back([this, &peer] { serve(peer); });
    }
  }
  void serve(Peer& peer) {
    for (Seen request; !peer.ended && peer.receive(request, reads_bodies_); request = Seen()) {
      {
        std::lock_guard lock(mutex_);
        seen_.push_back(request);
      }
      handler_(peer, request);
    }
    std::lock_guard lock(mutex_);
    peers_.remove_if([&peer](const Peer& other) { return &other == &peer; });
  }

  const Handler handler_;
  const bool reads_bodies_;
  int listener_;
  std::uint16_t port_ = 0;
  std::atomic<int> connections_{0};
  std::thread acceptor_;
  std::vector<std::thread> threads_;
  mutable std::mutex mutex_;
  std::list<Peer> peers_;
  std::vector<Seen> seen_;
};

// An answer; `more` are further header lines, each with its line end.
inline std::string reply(int status, const std::string& body, const std::string& more = {},
                         const std::string& type = "application/json") {
  std::string head = "HTTP/1.1 " + std::to_string(status) + " Text\r\n" + more;
  if (status == 204) return head + "\r\n";
  return head + "Content-Type: " + type + "\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

// These answers, one after the other, on whichever connection.
inline ScriptedServer::Handler replies(std::vector<std::string> script) {
  auto next = std::make_shared<std::atomic<std::size_t>>(0);
  return [script = std::move(script), next](Peer& peer, const Seen&) {
    std::size_t at = (*next)++;
    peer.send(at < script.size() ? script[at] : reply(500, R"({"error":"the script is over"})"));
  };
}

}  // namespace sandbox::pandastack
