#include "sandbox/bounded_text.hpp"

#include <algorithm>

namespace sandbox {

namespace {

bool continues(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

// The length of the well-formed UTF-8 sequence (Unicode, table 3-7) that `bytes` starts with; 0:
// none.
std::size_t sequence(std::string_view bytes) {
  auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  unsigned char first = at(0);
  if (first < 0x80) return 1;
  std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || bytes.size() < length) return 0;
  unsigned char low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  unsigned char high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  if (at(1) < low || at(1) > high) return 0;
  for (std::size_t i = 2; i < length; ++i)
    if (!continues(bytes[i])) return 0;
  return length;
}

}  // namespace

std::size_t whole_characters(std::string_view bytes, std::size_t size) {
  if (size >= bytes.size()) return bytes.size();
  std::size_t start = size;
  while (start > 0 && size - start < 3 && continues(bytes[start])) --start;
  bool cuts = start < size && start + sequence(bytes.substr(start)) > size;
  return cuts ? start : size;
}

std::string readable_end(std::string_view bytes, std::size_t size) {
  std::string out;
  std::size_t from = bytes.size() - std::min(size, bytes.size());
  while (from < bytes.size() && from > 0 && continues(bytes[from])) ++from;
  while (from < bytes.size()) {
    std::size_t length = sequence(bytes.substr(from));
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
  bool large = bytes >= 1ull << 30;
  std::uint64_t unit = large ? 1ull << 30 : 1ull << 20;
  std::string text = std::to_string(bytes / unit);
  std::uint64_t tenths = bytes % unit * 10 / unit;
  if (tenths != 0) text.append(".").append(std::to_string(tenths));
  return text.append(large ? " GiB" : " MiB");
}

}  // namespace sandbox
