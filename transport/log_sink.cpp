#include "transport/log_sink.hpp"

#include <poll.h>
#include <unistd.h>

#include <climits>
#include <string>
#include <string_view>

namespace transport {

void LogSink::sink_it_(const spdlog::details::log_msg& message) {
  spdlog::memory_buf_t formatted;
  formatter_->format(message, formatted);
  std::string line(formatted.data(), formatted.size());
  if (line.size() > PIPE_BUF) line.replace(PIPE_BUF - 5, std::string::npos, " ...\n");

  if (dropped_ > 0) {
    std::string notice = "(" + std::to_string(dropped_) + " log lines dropped: nobody read them)\n";
    if (write_now(notice)) dropped_ = 0;
  }
  if (dropped_ > 0 || !write_now(line)) ++dropped_;
}

// A pipe polls writable when it has a free page, and then takes PIPE_BUF bytes without blocking
// (pipe(7)).
bool LogSink::write_now(std::string_view text) {
  pollfd ready{fd_, POLLOUT, 0};
  if (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT)) return false;
  return write(fd_, text.data(), text.size()) > 0;
}

}  // namespace transport
