#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <optional>
#include <string>

#include "async/task_group.hpp"
#include "tests/support/fixture_tools.hpp"
#include "transport/stdio.hpp"

// A client and serve_stdio over two pipes, on one thread: the server runs while the client waits.
class Conversation {
 public:
  using Limit = std::chrono::milliseconds;

  explicit Conversation(transport::StdioLimits limits = {}) : tasks_(io_.get_executor()) {
    if (pipe2(to_server_, O_CLOEXEC) != 0 || pipe2(from_server_, O_CLOEXEC) != 0)
      throw std::system_error(errno, std::system_category(), "pipe2");
    fcntl(to_server_[1], F_SETFL, O_NONBLOCK);
    fcntl(from_server_[0], F_SETFL, O_NONBLOCK);
    tasks_.spawn(serve(limits));
  }

  ~Conversation() {
    tasks_.cancel();
    run_until([&] { return ended_; }, Limit(30000));
    for (int fd : {to_server_[0], to_server_[1], from_server_[0], from_server_[1]})
      if (fd >= 0) close(fd);
  }

  // How much the server took before `limit` passed without it taking any more.
  std::size_t write(std::string_view bytes, Limit limit = Limit(30000)) {
    std::size_t sent = 0;
    run_until(
        [&] {
          while (sent < bytes.size()) {
            ssize_t size = ::write(to_server_[1], bytes.data() + sent, bytes.size() - sent);
            if (size <= 0) return false;
            sent += size;
          }
          return true;
        },
        limit);
    return sent;
  }

  void send(const std::string& line) { write(line + "\n"); }

  // The next line, or nothing within `limit`.
  std::optional<std::string> receive(Limit limit = Limit(30000)) {
    std::size_t end = std::string::npos;
    run_until(
        [&] {
          char chunk[65536];
          while ((end = received_.find('\n')) == std::string::npos) {
            ssize_t size = read(from_server_[0], chunk, sizeof chunk);
            if (size <= 0) return false;
            received_.append(chunk, size);
          }
          return true;
        },
        limit);
    if (end == std::string::npos) return std::nullopt;
    std::string line = received_.substr(0, end);
    received_.erase(0, end + 1);
    return line;
  }

  void close_input() { close_end(to_server_[1]); }
  void stop_reading() { close_end(from_server_[0]); }
  void cancel() { tasks_.cancel(); }

  // Milliseconds until serve_stdio returned, or nothing if it has not within `limit`.
  std::optional<long> ends_within(Limit limit) {
    auto started = std::chrono::steady_clock::now();
    run_until([&] { return ended_; }, limit);
    if (!ended_) return std::nullopt;
    return std::chrono::ceil<Limit>(std::chrono::steady_clock::now() - started).count();
  }

  int server_input() const { return to_server_[0]; }

 private:
  static void close_end(int& fd) {
    close(fd);
    fd = -1;
  }

  async::awaitable<void> serve(transport::StdioLimits limits) {
    co_await boost::asio::this_coro::throw_if_cancelled(false);
    co_await transport::serve_stdio(server_, to_server_[0], from_server_[1], limits);
    ended_ = true;
  }

  template <class Condition>
  void run_until(Condition holds, Limit limit) {
    auto deadline = std::chrono::steady_clock::now() + limit;
    while (!holds() && std::chrono::steady_clock::now() < deadline) {
      io_.restart();
      io_.run_one_for(Limit(5));
    }
  }

  boost::asio::io_context io_{1};
  mcp::Server server_ = fixture_server();
  async::TaskGroup tasks_;
  int to_server_[2];
  int from_server_[2];
  std::string received_;
  bool ended_ = false;
};

inline std::string ping(int id) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":"ping"})";
}

inline std::string pong(int id) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"result":{}})";
}

inline std::string call(int id, const std::string& tool, const std::string& arguments) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
         R"(,"method":"tools/call","params":{"name":")" + tool + R"(","arguments":)" + arguments +
         "}}";
}
