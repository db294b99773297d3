#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace tools {

// pykeep://sessions/{session}/files/{+path} and pykeep://sessions/{session}/executions/{n}
struct ResourceUri {
  std::string session;
  std::string file;   // a workspace path, percent-decoded; or
  int execution = 0;  // an execution's number
};

std::string file_uri(const std::string& session, const std::string& path);
std::string execution_uri(const std::string& session, int number);

// nullopt for everything else: another scheme, a bad escape, a number out of range.
std::optional<ResourceUri> parse_resource_uri(std::string_view uri);

}  // namespace tools
