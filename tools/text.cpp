#include "tools/text.hpp"

#include <algorithm>

#include "schemas/utf8.hpp"

namespace tools {

namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_control(char c) {
  auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F;
}

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// The length of the escape sequence at the start of `s`, which is an ESC (ECMA-48: CSI ends with a
// byte of 0x40-0x7E, OSC and the other strings with BEL or ESC \). An unfinished string sequence is
// taken to end with its line, so that a lone "ESC ]" cannot hide what follows.
std::size_t escape_sequence(std::string_view s) {
  if (s.size() < 2) return s.size();
  std::size_t i = 2;
  if (s[1] == '[') {
    while (i < s.size() && s[i] >= 0x20 && s[i] <= 0x3F) ++i;
    return i < s.size() && s[i] >= 0x40 && s[i] <= 0x7E ? i + 1 : i;
  }
  if (s[1] == ']' || s[1] == 'P' || s[1] == '_' || s[1] == '^' || s[1] == 'X') {
    while (i < s.size() && s[i] != '\a' && s[i] != '\n' && s[i] != '\x1b') ++i;
    if (i < s.size() && s[i] == '\a') return i + 1;
    if (i + 1 < s.size() && s[i] == '\x1b' && s[i + 1] == '\\') return i + 2;
    return i;
  }
  while (i < s.size() && s[i - 1] >= 0x20 && s[i - 1] <= 0x2F) ++i;
  return s[1] >= 0x20 && s[1] <= 0x7E ? i : 1;
}

std::string without_escapes(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    std::size_t escape = bytes.find('\x1b');
    out.append(bytes.substr(0, escape));
    if (escape == bytes.npos) break;
    bytes.remove_prefix(escape);
    bytes.remove_prefix(escape_sequence(bytes));
  }
  return out;
}

// "10%\r20%\r30%\n" was seen as "30%" in the end. An overwriting that is empty leaves the line be.
std::string_view last_version(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  std::size_t start = line.rfind('\r');
  return start == line.npos ? line : line.substr(start + 1);
}

}  // namespace

std::string valid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    std::size_t length = schemas::utf8_sequence(bytes);
    if (length == 0 || (length == 1 && is_control(bytes[0]))) {
      out += kReplacement;
      length = 1;
    } else {
      out.append(bytes.substr(0, length));
    }
    bytes.remove_prefix(length);
  }
  return out;
}

bool is_text(std::string_view bytes) {
  while (!bytes.empty()) {
    std::size_t length = bytes[0] == '\0' ? 0 : schemas::utf8_sequence(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string_view without_cut_end(std::string_view bytes) {
  std::size_t start = bytes.size();
  while (start > 0 && bytes.size() - start < 3 && continues(bytes[start - 1])) --start;
  bool leads = start > 0 && static_cast<unsigned char>(bytes[start - 1]) >= 0xC2;
  if (leads && schemas::utf8_sequence(bytes.substr(start - 1)) == 0)
    bytes = bytes.substr(0, start - 1);
  return bytes;
}

std::string one_line(std::string_view bytes) {
  std::string line = plain_text(bytes);
  std::ranges::replace(line, '\n', ' ');
  std::ranges::replace(line, '\t', ' ');
  return line;
}

std::string plain_text(std::string_view bytes) {
  std::string unescaped = without_escapes(bytes);
  std::string_view rest = unescaped;
  std::string out;
  out.reserve(rest.size());
  while (!rest.empty()) {
    std::size_t end = rest.find('\n');
    out += valid_utf8(last_version(rest.substr(0, end)));
    if (end == rest.npos) break;
    out += '\n';
    rest.remove_prefix(end + 1);
  }
  return out;
}

std::size_t characters(std::string_view utf8) {
  return static_cast<std::size_t>(
      std::ranges::count_if(utf8, [](char c) { return !continues(c); }));
}

std::string_view first_characters(std::string_view utf8, std::size_t count) {
  std::size_t i = 0;
  for (; i < utf8.size(); ++i) {
    if (continues(utf8[i])) continue;
    if (count-- == 0) break;
  }
  return utf8.substr(0, i);
}

std::string_view last_characters(std::string_view utf8, std::size_t count) {
  std::size_t i = utf8.size();
  while (i > 0 && count > 0) {
    --i;
    if (!continues(utf8[i])) --count;
  }
  return utf8.substr(i);
}

std::string with_thousands(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (int i = static_cast<int>(digits.size()) - 3; i > 0; i -= 3) digits.insert(i, ",");
  return digits;
}

}  // namespace tools
