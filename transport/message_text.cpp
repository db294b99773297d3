#include "transport/message_text.hpp"

#include <charconv>

namespace transport {

namespace json = boost::json;

namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kWhitespace = " \t\r\n";
constexpr std::size_t kMaxDepth = 64;

std::string_view without_mark(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return text;
}

std::optional<json::value> parse(std::string_view text) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  boost::system::error_code malformed;
  json::value value = json::parse(text, malformed, {}, options);
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
  auto value = parse(without_mark(text));
  if (!value && replace_lone_surrogates(text)) value = parse(without_mark(text));
  return value;
}

}  // namespace transport
