#pragma once

// Tool arguments that modern clients repeat as HTTP headers (2026-07-28, `x-mcp-header`), so that a
// load balancer can see them.

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace mcp {

struct MirroredArgument {
  std::string header;                       // what follows "Mcp-Param-"
  std::optional<boost::json::value> value;  // nullopt: absent or null, so the header must be, too
};

// An annotated property of an input schema, and the keys that lead to it.
struct Mirror {
  std::string header;
  std::vector<std::string> path;
};

// The annotations of `input_schema`. Throws std::invalid_argument for one that is not allowed:
// clients would have to drop the tool.
std::vector<Mirror> mirrors_in(const boost::json::object& input_schema);

std::vector<MirroredArgument> mirrored(const std::vector<Mirror>& mirrors,
                                       const boost::json::object& arguments);

}  // namespace mcp
