#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace transcripts {

// A server started over pipes with an empty state directory of its own; both go with this object.
// Its stderr is the runner's.
class ServerProcess {
 public:
  ServerProcess(const std::vector<std::string>& command,
                const std::vector<std::string>& environment);
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;
  ~ServerProcess();

  // Throws std::runtime_error when the server does not take it within `limit`.
  void send(const std::string& line, std::chrono::milliseconds limit);
  // The next line, or nothing once `limit` has passed or the output has ended.
  std::optional<std::string> receive(std::chrono::milliseconds limit);
  void close_input();
  // The status as a shell shows it, or nothing if it still runs after `limit`.
  std::optional<int> wait(std::chrono::milliseconds limit);

 private:
  std::filesystem::path state_;
  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  std::string buffer_;
};

}  // namespace transcripts
