#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tools/notebook.hpp"

namespace tools {

// pykeep://sessions/{session}/files/{+path}, …/executions/{n}, …/notebook.ipynb and …/script.py
struct ResourceUri {
  std::string session;
  std::string file;                   // a workspace path, percent-decoded; or
  int execution = 0;                  // an execution's number; or
  std::optional<ExportFormat> whole;  // the session as one file
};

std::string file_uri(const std::string& session, const std::string& path);
std::string execution_uri(const std::string& session, int number);
std::string export_uri(const std::string& session, ExportFormat format);

// nullopt for everything else: another scheme, a bad escape, a number out of range.
std::optional<ResourceUri> parse_resource_uri(std::string_view uri);

}  // namespace tools
