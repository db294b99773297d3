#pragma once

#include <memory>
#include <vector>

#include "tools/observer.hpp"

namespace app {

// Logs what becomes of executions and kernels, and passes it on to all others.
class Observers final : public tools::Observer {
 public:
  void add(std::shared_ptr<tools::Observer> other) { others_.push_back(std::move(other)); }

  void execution_ended(const tools::ExecutionReport& report) override;
  void kernel_started(const std::string& principal, const std::string& session, sandbox::Start how,
                      std::chrono::milliseconds took) override;
  void file_written(const std::string& principal, const std::string& session,
                    const std::string& path) override;
  void kernel_ended(const std::string& session, const std::string& cause) override;

 private:
  std::vector<std::shared_ptr<tools::Observer>> others_;
};

// "cold", "template_image", "image".
const char* start_name(sandbox::Start how);

}  // namespace app
