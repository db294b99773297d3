#include "tools/name.hpp"

#include "mcp/error.hpp"
#include "tools/text.hpp"

namespace tools {

namespace {

constexpr std::size_t kMaxName = 64;

}  // namespace

void check_name(const std::string& name, const std::string& consequence) {
  bool fits = !name.empty() && characters(name) <= kMaxName && plain_text(name) == name &&
              name.find('\n') == name.npos;
  if (!fits)
    throw mcp::ToolError("arguments.name: expected 1 to " + std::to_string(kMaxName) +
                         " characters on one line. " + consequence);
}

}  // namespace tools
