#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace transcripts {

// A program with an empty state directory of its own; both go with this object. We write to its
// input and read from one of its outputs; the other one is ours.
class Child {
 public:
  Child(const std::vector<std::string>& command, const std::vector<std::string>& environment,
        int output);
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  int in() const { return in_; }    // does not block
  int out() const { return out_; }  // does
  void close_input();
  void signal(int number);
  std::optional<int> wait(std::chrono::milliseconds limit);

 private:
  std::filesystem::path state_;
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
};

using Clock = std::chrono::steady_clock;

// Whether the descriptor can be read (POLLIN) or written (POLLOUT) before the deadline.
bool ready(int fd, short what, Clock::time_point deadline);
int milliseconds_until(Clock::time_point deadline);

}  // namespace transcripts
