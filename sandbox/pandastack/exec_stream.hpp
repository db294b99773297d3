#pragma once

#include <memory>
#include <optional>
#include <string>

#include "sandbox/pandastack/http.hpp"
#include "sandbox/pandastack/server_events.hpp"

namespace sandbox::pandastack {

struct ExecOutput {
  bool is_stderr = false;
  std::string text;  // what is not UTF-8 was replaced on the way: send binary data as base64
};

// A command that runs in a sandbox, with its output as it comes. Destroying it before the end
// closes the connection, whereupon the server sends the command SIGTERM.
class ExecStream {
 public:
  // `purpose` begins the text of errors.
  ExecStream(std::unique_ptr<Answer> answer, std::string purpose);
  ExecStream(const ExecStream&) = delete;
  ExecStream& operator=(const ExecStream&) = delete;
  ~ExecStream();

  // The next output; nullopt once the command has ended. Throws Error when the stream ends or fails
  // before that; `unknown`, but where the guest could not be reached in the first place. A
  // cancelled call loses nothing.
  awaitable<std::optional<ExecOutput>> next();
  int exit_code() const;  // once next() has returned nullopt

 private:
  std::optional<ExecOutput> output(const ServerEvents::Event& event);

  std::unique_ptr<Answer> answer_;
  std::string purpose_;
  ServerEvents events_;
  std::optional<int> exit_code_;
};

}  // namespace sandbox::pandastack
