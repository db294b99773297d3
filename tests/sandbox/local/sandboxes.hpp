#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "sandbox/sandbox.hpp"

// What the tests of the local sandbox share.
namespace sandbox::local::testing {

// A directory of its own for each test, gone afterwards.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "pykeep-test-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

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
