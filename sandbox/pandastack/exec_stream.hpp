#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "sandbox/pandastack/http.hpp"

namespace sandbox::pandastack {

struct ExecOutput {
  bool is_stderr = false;
  std::string text;  // what is not UTF-8 was replaced on the way: send binary data as base64
};

// A command that runs in a sandbox, with its output as it comes. Destroying it before the end
// closes the connection, whereupon the server sends the command SIGTERM.
class ExecStream {
 public:
  ExecStream(std::unique_ptr<Answer> answer, std::string call);
  ExecStream(const ExecStream&) = delete;
  ExecStream& operator=(const ExecStream&) = delete;
  ~ExecStream();

  // The next output; nullopt once the command has ended. Throws Error (`unknown`) when the stream
  // ends or fails before that. A cancelled call loses nothing.
  awaitable<std::optional<ExecOutput>> next();
  int exit_code() const;  // once next() has returned nullopt

 private:
  class Parser;
  std::unique_ptr<Answer> answer_;
  std::unique_ptr<Parser> parser_;
};

}  // namespace sandbox::pandastack
