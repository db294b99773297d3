#include "mcp/mirrored.hpp"

#include <algorithm>
#include <stdexcept>

namespace mcp {

namespace json = boost::json;

namespace {

constexpr std::string_view kAnnotation = "x-mcp-header";

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// RFC 9110, section 5.6.2.
bool is_token(std::string_view text) {
  static constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  auto fits = [](char c) { return is_alphanumeric(c) || kOthers.find(c) != kOthers.npos; };
  return !text.empty() && std::all_of(text.begin(), text.end(), fits);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c += 'a' - 'A';
  return out;
}

// All annotations, wherever they are.
std::size_t count(const json::value& schema) {
  std::size_t found = 0;
  if (const json::object* object = schema.if_object()) {
    for (const auto& member : *object)
      found += member.key() == kAnnotation ? 1 : count(member.value());
  } else if (const json::array* array = schema.if_array()) {
    for (const json::value& item : *array) found += count(item);
  }
  return found;
}

Mirror read(const json::object& property, const std::vector<std::string>& path) {
  const json::value& header = property.at(kAnnotation);
  const json::value* type = property.if_contains("type");
  bool typed = type && (*type == "string" || *type == "integer" || *type == "boolean");
  if (!typed || !header.is_string() || !is_token(header.get_string()))
    throw std::invalid_argument("x-mcp-header of " + path.back() +
                                ": needs an HTTP token, on a string, an integer or a boolean");
  Mirror mirror;
  mirror.header = header.get_string();
  mirror.path = path;
  return mirror;
}

// The annotations that properties alone lead to.
void collect(const json::object& schema, std::vector<std::string>& path, std::vector<Mirror>& out) {
  const json::value* properties = schema.if_contains("properties");
  if (!properties || !properties->is_object()) return;
  for (const auto& member : properties->get_object()) {
    const json::object* property = member.value().if_object();
    if (!property) continue;
    path.emplace_back(member.key());
    if (property->contains(kAnnotation)) out.push_back(read(*property, path));
    collect(*property, path, out);
    path.pop_back();
  }
}

const json::value* at(const json::object& arguments, const std::vector<std::string>& path) {
  const json::object* object = &arguments;
  const json::value* found = nullptr;
  for (const std::string& key : path) {
    found = object ? object->if_contains(key) : nullptr;
    object = found ? found->if_object() : nullptr;
  }
  return found;
}

}  // namespace

std::vector<Mirror> mirrors_in(const json::object& input_schema) {
  std::vector<Mirror> mirrors;
  std::vector<std::string> path;
  collect(input_schema, path, mirrors);
  if (count(input_schema) != mirrors.size())
    throw std::invalid_argument("x-mcp-header: only on what properties alone lead to");
  std::vector<std::string> names;
  for (const Mirror& mirror : mirrors) names.push_back(lower(mirror.header));
  std::sort(names.begin(), names.end());
  if (std::adjacent_find(names.begin(), names.end()) != names.end())
    throw std::invalid_argument("x-mcp-header: a name may occur once in a tool");
  return mirrors;
}

std::vector<MirroredArgument> mirrored(const std::vector<Mirror>& mirrors,
                                       const json::object& arguments) {
  std::vector<MirroredArgument> out;
  for (const Mirror& mirror : mirrors) {
    MirroredArgument& one = out.emplace_back();
    one.header = mirror.header;
    const json::value* found = at(arguments, mirror.path);
    if (found && !found->is_null()) one.value = *found;
  }
  return out;
}

}  // namespace mcp
