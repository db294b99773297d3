#pragma once

// Putting one entry into a configuration file that belongs to somebody else, and taking it out: by
// splicing text, so that every other byte (comments, order, indentation, line ends) stays.

#include <boost/json.hpp>
#include <stdexcept>
#include <string>
#include <string_view>

namespace client_config {

enum class Format { json, toml, yaml };  // json: with comments and trailing commas

// The entry `name` in the top-level table `table` of a file. Both are plain: letters, digits, '-'
// and '_'. `fields` are strings, lists of strings, numbers and booleans, in their order.
struct Entry {
  std::string table;
  std::string name;
  boost::json::object fields;
};

// The text is not what we understand so well that we would change it: for the reader, with the line
// that shows it.
struct EditError : std::runtime_error {
  EditError(std::size_t line, const std::string& what)
      : std::runtime_error("line " + std::to_string(line) + ": " + what) {}
};

// The text with the entry: put in as the first of its table (TOML: at the end), or in the place of
// the one that has its name. An empty text becomes a whole file. Throws EditError.
std::string with_entry(Format format, std::string_view text, const Entry& entry);

// The text without the entry; the same text if it has none. Throws EditError.
std::string without_entry(Format format, std::string_view text, const std::string& table,
                          const std::string& name);

// How a text is written, as far as we follow it.
struct Style {
  std::string line_end = "\n";
  std::string indent = "  ";
};
Style style_of(std::string_view text);

std::size_t line_of(std::string_view text, std::size_t at);

// The parts of with_entry() and without_entry(), one file each.
std::string with_json_entry(std::string_view text, const Entry& entry);
std::string without_json_entry(std::string_view text, const std::string& table,
                               const std::string& name);
std::string with_toml_entry(std::string_view text, const Entry& entry);
std::string without_toml_entry(std::string_view text, const std::string& table,
                               const std::string& name);
std::string with_yaml_entry(std::string_view text, const Entry& entry);
std::string without_yaml_entry(std::string_view text, const std::string& table,
                               const std::string& name);

}  // namespace client_config
