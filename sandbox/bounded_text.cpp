#include "sandbox/bounded_text.hpp"

#include <algorithm>
#include <cstdio>
#include <iterator>

#include "schemas/utf8.hpp"

namespace sandbox {

namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

}  // namespace

std::size_t whole_characters(std::string_view bytes, std::size_t size) {
  if (size >= bytes.size()) return bytes.size();
  std::size_t start = size;
  while (start > 0 && size - start < 3 && continues(bytes[start])) --start;
  bool cuts = start < size && start + schemas::utf8_sequence(bytes.substr(start)) > size;
  return cuts ? start : size;
}

std::string readable_end(std::string_view bytes, std::size_t size) {
  std::string out;
  std::size_t from = bytes.size() - std::min(size, bytes.size());
  while (from < bytes.size() && from > 0 && continues(bytes[from])) ++from;
  while (from < bytes.size()) {
    std::size_t length = schemas::utf8_sequence(bytes.substr(from));
    unsigned char first = static_cast<unsigned char>(bytes[from]);
    if (length == 0)
      out += '?';
    else if (length > 1 || first == '\n' || first == '\t' || (first >= 0x20 && first != 0x7F))
      out.append(bytes, from, length);
    from += std::max<std::size_t>(length, 1);
  }
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ')) out.pop_back();
  return out;
}

std::string size_text(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  char text[32];
  bool whole = unit == 0 || value == static_cast<double>(static_cast<std::uint64_t>(value));
  std::snprintf(text, sizeof text, whole ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text;
}

}  // namespace sandbox
