#pragma once

#include <chrono>
#include <optional>
#include <string>

namespace transcripts {

// What a conversation is held with: messages out, messages in, whatever carries them.
class Server {
 public:
  virtual ~Server() = default;

  // Throws std::runtime_error when the server does not take it within `limit`.
  virtual void send(const std::string& message, std::chrono::milliseconds limit) = 0;
  // The next message, or nothing once `limit` has passed or none can come any more. Throws
  // std::runtime_error when what comes breaks the transport's rules.
  virtual std::optional<std::string> receive(std::chrono::milliseconds limit) = 0;
  // Says that nothing more will be sent, as a client does who leaves.
  virtual void leave() = 0;
  // Ends it; the status as a shell shows it, or nothing if it still runs after `limit`.
  virtual std::optional<int> wait(std::chrono::milliseconds limit) = 0;
};

}  // namespace transcripts
