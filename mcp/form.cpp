#include "mcp/form.hpp"

#include <cmath>

#include "schemas/codec.hpp"

namespace mcp {

namespace json = boost::json;

namespace {

[[noreturn]] void fail(const std::string& path, const std::string& wish) {
  throw schemas::DecodeError(path + ": " + wish);
}

// The choices a schema gives, as `enum`, or as `oneOf` or `anyOf` of {const, title}.
bool is_choice(const json::object& schema, const json::value& value) {
  if (const json::value* names = schema.if_contains("enum")) {
    for (const json::value& name : names->as_array())
      if (name == value) return true;
    return false;
  }
  for (const char* key : {"oneOf", "anyOf"}) {
    const json::value* options = schema.if_contains(key);
    if (!options) continue;
    for (const json::value& option : options->as_array())
      if (option.at("const") == value) return true;
    return false;
  }
  return true;
}

// What a schema says about a measure of the value: its size, its length, its number of items.
void check_range(const json::object& schema, double measure, const char* least, const char* most,
                 const std::string& path) {
  const json::value* bound = schema.if_contains(least);
  if (bound && measure < bound->to_number<double>())
    fail(path, std::string(least) + " is " + json::serialize(*bound));
  bound = schema.if_contains(most);
  if (bound && measure > bound->to_number<double>())
    fail(path, std::string(most) + " is " + json::serialize(*bound));
}

std::size_t characters(std::string_view utf8) {
  std::size_t count = 0;
  for (unsigned char byte : utf8) count += (byte & 0xC0) != 0x80;
  return count;
}

bool is_whole(const json::value& value) {
  return value.is_number() &&
         (!value.is_double() || std::trunc(value.get_double()) == value.get_double());
}

void check_field(const json::object& schema, const json::value& value, const std::string& path) {
  const json::value* declared = schema.if_contains("type");
  std::string_view type = declared ? std::string_view(declared->as_string()) : "";
  if (type == "string") {
    if (!value.is_string()) fail(path, "expected string");
    if (!is_choice(schema, value)) fail(path, "not one of the choices");
    double length = static_cast<double>(characters(value.get_string()));
    check_range(schema, length, "minLength", "maxLength", path);
  } else if (type == "integer" || type == "number") {
    if (!(type == "integer" ? is_whole(value) : value.is_number()))
      fail(path, "expected " + std::string(type));
    check_range(schema, value.to_number<double>(), "minimum", "maximum", path);
  } else if (type == "boolean") {
    if (!value.is_bool()) fail(path, "expected boolean");
  } else if (type == "array") {
    if (!value.is_array()) fail(path, "expected array");
    double items = static_cast<double>(value.get_array().size());
    check_range(schema, items, "minItems", "maxItems", path);
    for (const json::value& item : value.get_array())
      if (!item.is_string() || !is_choice(schema.at("items").as_object(), item))
        fail(path, "an item is not one of the choices");
  }
}

}  // namespace

void check_form(const json::object& schema, const json::object& content, const std::string& path) {
  if (const json::value* required = schema.if_contains("required"))
    for (const json::value& name : required->as_array())
      if (!content.contains(name.as_string()))
        fail(path + "." + std::string(name.as_string()), "required");
  const json::value* properties = schema.if_contains("properties");
  if (!properties) return;
  for (const auto& property : properties->as_object()) {
    const json::value* given = content.if_contains(property.key());
    if (given)
      check_field(property.value().as_object(), *given, path + "." + std::string(property.key()));
  }
}

}  // namespace mcp
