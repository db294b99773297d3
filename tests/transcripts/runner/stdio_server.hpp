#pragma once

#include <string>
#include <vector>

#include "tests/transcripts/runner/child.hpp"
#include "tests/transcripts/runner/server.hpp"

namespace transcripts {

// A server over pipes: a line is a message, and the end of its input ends it.
class StdioServer final : public Server {
 public:
  StdioServer(const std::vector<std::string>& command, const std::vector<std::string>& environment);

  void send(const std::string& message, std::chrono::milliseconds limit) override;
  std::optional<std::string> receive(std::chrono::milliseconds limit) override;
  void leave() override { child_.close_input(); }
  std::optional<int> wait(std::chrono::milliseconds limit) override { return child_.wait(limit); }

 private:
  Child child_;
  std::string buffer_;
};

}  // namespace transcripts
