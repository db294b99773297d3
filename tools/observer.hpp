#pragma once

// What the rest of the program may learn about executions and sessions: for metrics and the audit
// file. The tools know no file, format or counter of either.

#include <chrono>
#include <cstdint>
#include <string>

#include "sandbox/execution.hpp"
#include "sandbox/sandbox.hpp"

namespace tools {

struct ExecutionReport {
  std::string principal;
  std::string session;
  std::string execution;
  std::string origin;  // what the transport calls the request that asked for it; may be empty
  int number = 0;      // n of In[n]; 0: it never began
  std::string code;    // whole; an observer that keeps something keeps a hash
  sandbox::Execution::Status status;
  std::string cause;  // why a kernel died or was stopped, as exit_cause words it; may be empty
  std::chrono::milliseconds duration{0};
  std::uint64_t output_bytes = 0;
};

// Called on the loop's thread; must not block, and never throws.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void execution_ended(const ExecutionReport& report) = 0;
  virtual void kernel_started(const std::string& principal, const std::string& session,
                              sandbox::Start how, std::chrono::milliseconds took) = 0;
  // A file was brought in, at `path` of the workspace.
  virtual void file_written(const std::string& /*principal*/, const std::string& /*session*/,
                            const std::string& /*path*/) {}
  // `cause` as lost kernels are explained to their users: "SIGSEGV (…)", "was idle for …".
  virtual void kernel_ended(const std::string& session, const std::string& cause) = 0;
};

}  // namespace tools
