#pragma once

#include <spdlog/sinks/base_sink.h>

#include <cstddef>
#include <mutex>

namespace transport {

// Writes log lines to a descriptor, in practice stderr, and never waits: many clients do not read
// their server's stderr, and a full pipe would stop the server in the middle of a request. A line
// that cannot be written now is dropped and counted; the next line that can be is preceded by the
// count. A line is cut to what a pipe takes in one piece.
//
// The descriptor stays blocking (it may be a terminal that others share) and the caller's.
class LogSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit LogSink(int fd) : fd_(fd) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override;
  void flush_() override {}
  bool write_now(std::string_view text);

  int fd_;
  std::size_t dropped_ = 0;
};

}  // namespace transport
