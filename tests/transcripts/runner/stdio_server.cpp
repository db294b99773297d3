#include "tests/transcripts/runner/stdio_server.hpp"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <stdexcept>

namespace transcripts {

StdioServer::StdioServer(const std::vector<std::string>& command,
                         const std::vector<std::string>& environment)
    : child_(command, environment, STDOUT_FILENO) {}

void StdioServer::send(const std::string& message, std::chrono::milliseconds limit) {
  auto deadline = Clock::now() + limit;
  std::string text = message + "\n";
  for (std::size_t sent = 0; sent < text.size();) {
    if (!ready(child_.in(), POLLOUT, deadline))
      throw std::runtime_error("the server does not read");
    ssize_t size = write(child_.in(), text.data() + sent, text.size() - sent);
    if (size < 0 && errno == EAGAIN) continue;
    if (size < 0) throw std::runtime_error("the server has closed its input");
    sent += static_cast<std::size_t>(size);
  }
}

std::optional<std::string> StdioServer::receive(std::chrono::milliseconds limit) {
  auto deadline = Clock::now() + limit;
  for (;;) {
    if (std::size_t end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    char chunk[65536];
    if (!ready(child_.out(), POLLIN, deadline)) return std::nullopt;
    ssize_t size = read(child_.out(), chunk, sizeof chunk);
    if (size <= 0) return std::nullopt;
    buffer_.append(chunk, static_cast<std::size_t>(size));
  }
}

}  // namespace transcripts
