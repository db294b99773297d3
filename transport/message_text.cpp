#include "transport/message_text.hpp"

#include <charconv>

#include "schemas/parse.hpp"

namespace transport {

namespace json = boost::json;

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kWhitespace = " \t\r\n";
constexpr std::size_t kMaxDepth = 64;
constexpr std::size_t kMaxValues = 100'000;

std::string_view without_mark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

// Whether it may have more values, an object's keys among them, than a message may: a text of two
// bytes a value becomes twelve times as much memory. A shorter text cannot have that many.
bool has_too_many_values(std::string_view text) {
  if (text.size() < 2 * kMaxValues) return false;
  std::size_t values = 1;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size() && values <= kMaxValues; ++at) {
    char c = text[at];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') ++at;
    if (!in_string && (c == ',' || c == ':' || c == '[' || c == '{')) ++values;
  }
  return values > kMaxValues;
}

std::optional<json::value> parse(std::string_view text) {
  boost::system::error_code malformed;
  json::value value = schemas::parse(text, malformed, kMaxDepth);
  if (malformed) return std::nullopt;
  return value;
}

// The code unit of the escape \uXXXX that starts here, if one does.
std::optional<unsigned> escaped_unit(std::string_view at) {
  if (at.size() < 6 || !at.starts_with("\\u")) return std::nullopt;
  unsigned unit = 0;
  auto [end, failed] = std::from_chars(at.data() + 2, at.data() + 6, unit, 16);
  if (failed != std::errc() || end != at.data() + 6) return std::nullopt;
  return unit;
}

bool is_leading(unsigned unit) { return unit >= 0xD800 && unit < 0xDC00; }
bool is_trailing(unsigned unit) { return unit >= 0xDC00 && unit < 0xE000; }

// Replaces every surrogate escape without its other half, in place; says whether there was one.
bool replace_lone_surrogates(std::string& text) {
  bool replaced = false;
  std::size_t at = text.find('\\');
  while (at < text.size()) {
    std::string_view rest = std::string_view(text).substr(at);
    std::size_t size = 2;
    if (auto unit = escaped_unit(rest)) {
      size = 6;
      auto next = escaped_unit(rest.substr(6));
      if (is_leading(*unit) && next && is_trailing(*next)) {
        size = 12;
      } else if (is_leading(*unit) || is_trailing(*unit)) {
        text.replace(at, 6, "\\uFFFD");
        replaced = true;
      }
    }
    at = text.find('\\', at + size);
  }
  return replaced;
}

}  // namespace

bool is_blank(std::string_view line) {
  return without_mark(line).find_first_not_of(kWhitespace) == std::string_view::npos;
}

std::optional<json::value> parse_message(std::string text) {
  if (has_too_many_values(text)) return std::nullopt;
  auto value = parse(without_mark(text));
  if (!value && replace_lone_surrogates(text)) value = parse(without_mark(text));
  return value;
}

}  // namespace transport
