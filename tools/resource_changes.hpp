#pragma once

#include "mcp/hub.hpp"
#include "tools/observer.hpp"

namespace tools {

// Tells the clients that subscribed to resources, and only their owner's, when one may have
// changed: an execution when it has ended, a file when it was uploaded, and every file of a session
// when code ran in it, which could have written any. (Lists never change: nothing is listed.)
class ResourceChanges final : public Observer {
 public:
  explicit ResourceChanges(mcp::Hub& hub) : hub_(hub) {}

  void execution_ended(const ExecutionReport& report) override;
  void file_written(const std::string& principal, const std::string& session,
                    const std::string& path) override;
  void kernel_started(const std::string&, const std::string&, sandbox::Start,
                      std::chrono::milliseconds) override {}
  void kernel_ended(const std::string&, const std::string&) override {}

 private:
  mcp::Hub& hub_;
};

}  // namespace tools
