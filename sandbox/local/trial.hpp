#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "sandbox/sandbox.hpp"

namespace sandbox::local {

// How a program in a sandbox of its own came out.
struct Trial {
  std::string failure;  // why it could not be started or did not end; empty if it did
  std::string out;      // at most 64 KiB each
  std::string err;
  int status = 0;  // as Process::wait_status
  std::uint64_t memory_kills = 0;
};

// Runs a program to its end. Blocks, at most `limit`; from the main thread.
Trial try_program(const SandboxSpec& spec, const std::vector<std::string>& argv,
                  std::chrono::milliseconds limit = std::chrono::seconds(10));

Trial try_script(const SandboxSpec& spec, const std::string& shell_script);

}  // namespace sandbox::local
