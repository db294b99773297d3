#include "schemas/parse.hpp"

#include <algorithm>
#include <cmath>

namespace schemas {

namespace json = boost::json;

namespace {

// No deeper than the parser went.
bool is_finite(const json::value& value) {
  if (const double* number = value.if_double()) return std::isfinite(*number);
  if (const json::array* array = value.if_array()) return std::ranges::all_of(*array, is_finite);
  const json::object* object = value.if_object();
  return !object || std::ranges::all_of(*object, [](const json::key_value_pair& member) {
    return is_finite(member.value());
  });
}

}  // namespace

json::value parse(std::string_view text, boost::system::error_code& malformed,
                  std::size_t max_depth) {
  json::parse_options options;
  options.max_depth = max_depth;
  json::value value = json::parse(text, malformed, {}, options);
  if (malformed || is_finite(value)) return value;
  malformed = json::make_error_code(json::error::exponent_overflow);
  return nullptr;
}

}  // namespace schemas
