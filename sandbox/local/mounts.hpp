#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sandbox/sandbox.hpp"

namespace sandbox::local {

// What a sandbox sees of this machine: an empty root, and what is listed here. Nothing that is not
// listed is reachable, so there is no list of what to hide.
struct Bind {
  std::filesystem::path source;  // on the host; links in it are followed
  std::string target;            // inside
  bool is_directory = true;
  bool writable = false;
};

struct Link {
  std::string target;
  std::string path;
};

struct GeneratedFile {
  std::string path;
  std::string contents;
};

struct View {
  std::vector<Bind> binds;  // in order
  std::vector<Link> links;
  std::vector<GeneratedFile> files;
};

constexpr const char* kWorkspace = "/workspace";
constexpr const char* kKernelPackage = "/opt/pykeep/kernel";
constexpr unsigned kInsideId = 1000;  // user and group inside

// The system's programs and libraries, a minimal /etc, the template, the kernel package (unless its
// path is empty), the workspace. With network also name resolution and certificates. Throws
// StartError for a directory that is missing or that must not be shown (the root, /proc, /dev,
// /sys).
View visible_in(const SandboxSpec& spec, const std::filesystem::path& kernel_package);

}  // namespace sandbox::local
