#pragma once

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "sandbox/sandbox.hpp"
#include "tests/support/scratch.hpp"

// What the tests of the local sandbox share.
namespace sandbox::local::testing {

using ::testing::Scratch;

inline SandboxSpec small_sandbox(const std::filesystem::path& workspace) {
  SandboxSpec spec;
  spec.name = "test";
  spec.workspace = workspace;
  spec.python.python = "/usr/bin/python3";
  spec.limits.memory = 256 << 20;
  spec.limits.processes = 48;
  spec.limits.file = 32 << 20;
  spec.limits.tmp = 16 << 20;
  return spec;
}

inline std::string contents_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

}  // namespace sandbox::local::testing
