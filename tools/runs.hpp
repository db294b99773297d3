#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "sandbox/execution.hpp"

namespace tools {

using sandbox::Execution;

// One execution in its session, and what its result has to say about the session first.
struct Run {
  std::shared_ptr<Execution> execution;
  std::vector<std::string> announcements;  // "New session …", "A new kernel was started: …"
  std::string rescue;     // after a kernel's end: what the next execution goes on from
  std::size_t bytes = 0;  // what it holds: code, stdin and outputs
  std::string origin;     // of its Cell

  void measure();  // `bytes` anew
};

// The executions of a session that are remembered, with those that wait and the one that runs.
// Bounded in number and bytes: the oldest that have finished are forgotten.
class Runs {
 public:
  // Whether one more may wait that holds so much.
  bool has_room(std::size_t bytes) const;
  void add(std::shared_ptr<Run> run);

  // Null when it is unknown.
  std::shared_ptr<Run> find(const std::string& execution_id) const;
  std::shared_ptr<Run> find(int number) const;

  // Asks those that have not finished to stop.
  void stop(Execution::Stop how);

 private:
  void forget_old();

  std::deque<std::shared_ptr<Run>> runs_;  // oldest first
};

}  // namespace tools
