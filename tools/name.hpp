#pragma once

#include <string>

namespace tools {

// Throws ToolError, which ends with `consequence`, unless it is a name that people can read: 1 to
// 64 characters on one line.
void check_name(const std::string& name, const std::string& consequence);

}  // namespace tools
