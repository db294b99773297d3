#pragma once

#include <boost/json.hpp>
#include <string>

namespace mcp {

// Holds what a user filled in to the form that was asked for: required fields, types, choices and
// ranges, by the flat schemas that elicitation has (2025-11-25, "Requested Schema"). Formats are
// for the client's display. Further fields are let through, and patterns do not occur. Throws
// schemas::DecodeError that names the field, below `path`.
void check_form(const boost::json::object& schema, const boost::json::object& content,
                const std::string& path);

}  // namespace mcp
