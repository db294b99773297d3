#include "transport/http/file_headers.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

namespace transport::http {

namespace {

constexpr std::string_view kUnit = "bytes=";
// RFC 8187, section 3.2.1: what attr-char has beside letters and digits.
constexpr std::string_view kPlain = "!#$&+-.^_`|~";

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

}  // namespace

std::optional<ByteRange> byte_range(std::string_view header, std::uint64_t size) {
  if (!header.starts_with(kUnit)) return std::nullopt;
  header.remove_prefix(kUnit.size());
  std::size_t dash = header.find('-');
  if (dash == header.npos) return std::nullopt;
  std::string_view first_text = header.substr(0, dash), last_text = header.substr(dash + 1);
  auto first = number(first_text), last = number(last_text);
  if (first_text.empty()) {  // the last so many bytes
    if (!last) return std::nullopt;
    std::uint64_t count = std::min(*last, size);
    return ByteRange{size - count, count};
  }
  if (!first || (!last && !last_text.empty()) || (last && *last < *first)) return std::nullopt;
  if (*first >= size) return ByteRange{};
  return ByteRange{*first, std::min(last.value_or(size), size - 1) - *first + 1};
}

std::string attachment(std::string_view name) {
  constexpr char kHex[] = "0123456789ABCDEF";
  std::string plain, encoded;
  for (char c : name) {
    auto byte = static_cast<unsigned char>(c);
    bool readable = byte >= 0x20 && byte < 0x7F && c != '"' && c != '\\' && c != '%';
    plain += readable ? c : '_';
    if (is_letter_or_digit(c) || kPlain.find(c) != kPlain.npos) {
      encoded += c;
    } else {
      encoded += '%';
      encoded += kHex[byte >> 4];
      encoded += kHex[byte & 15];
    }
  }
  return "attachment; filename=\"" + plain + "\"; filename*=UTF-8''" + encoded;
}

std::string_view inert_type(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {".csv", "text/csv"},   {".gif", "image/gif"},         {".jpeg", "image/jpeg"},
      {".jpg", "image/jpeg"}, {".json", "application/json"}, {".png", "image/png"},
      {".txt", "text/plain"}, {".webp", "image/webp"},       {".zip", "application/zip"},
  };
  for (const auto& [ending, type] : kTypes)
    if (name.ends_with(ending)) return type;
  return "application/octet-stream";
}

}  // namespace transport::http
