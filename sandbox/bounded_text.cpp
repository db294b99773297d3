#include "sandbox/bounded_text.hpp"

#include <algorithm>

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
  bool large = bytes >= 1ull << 30;
  std::uint64_t unit = large ? 1ull << 30 : 1ull << 20;
  std::string text = std::to_string(bytes / unit);
  std::uint64_t tenths = bytes % unit * 10 / unit;
  if (tenths != 0) text.append(".").append(std::to_string(tenths));
  return text.append(large ? " GiB" : " MiB");
}

}  // namespace sandbox
