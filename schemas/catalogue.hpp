#pragma once

#include <boost/json.hpp>
#include <string_view>

namespace schemas {

// The embedded document schemas/<name>.json: name, title, description for the model, inputSchema
// and annotations of one tool. Parsed once, lives as long as the program. A name without a document
// is a defect of ours: throws std::logic_error.
const boost::json::object& document(std::string_view name);

}  // namespace schemas
