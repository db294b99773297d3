#include "client_config/edit.hpp"

#include <algorithm>

namespace client_config {

std::size_t line_of(std::string_view text, std::size_t at) {
  return 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, at), '\n'));
}

Style style_of(std::string_view text) {
  Style style;
  std::size_t end = text.find('\n');
  if (end != text.npos && end > 0 && text[end - 1] == '\r') style.line_end = "\r\n";
  for (; end != text.npos; end = text.find('\n', end + 1)) {
    std::size_t first = text.find_first_not_of(" \t", end + 1);
    if (first == text.npos || first == end + 1 || text[first] == '\r' || text[first] == '\n')
      continue;
    if (text[first] == '*') continue;  // the middle of a comment
    style.indent = text.substr(end + 1, first - end - 1);
    break;
  }
  return style;
}

std::string with_entry(Format format, std::string_view text, const Entry& entry) {
  switch (format) {
    case Format::json:
      return with_json_entry(text, entry);
    case Format::toml:
      return with_toml_entry(text, entry);
    case Format::yaml:
      return with_yaml_entry(text, entry);
  }
  return std::string(text);
}

std::string without_entry(Format format, std::string_view text, const std::string& table,
                          const std::string& name) {
  switch (format) {
    case Format::json:
      return without_json_entry(text, table, name);
    case Format::toml:
      return without_toml_entry(text, table, name);
    case Format::yaml:
      return without_yaml_entry(text, table, name);
  }
  return std::string(text);
}

}  // namespace client_config
