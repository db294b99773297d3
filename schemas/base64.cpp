#include "schemas/base64.hpp"

#include <array>
#include <cstdint>

namespace schemas {

namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr auto kValues = [] {
  std::array<std::int8_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i)
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::int8_t>(i);
  return values;
}();

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

}  // namespace

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    auto byte = [&](std::size_t k) {
      return i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u;
    };
    unsigned group = byte(0) << 16 | byte(1) << 8 | byte(2);
    out += kAlphabet[group >> 18];
    out += kAlphabet[group >> 12 & 63];
    out += i + 1 < bytes.size() ? kAlphabet[group >> 6 & 63] : '=';
    out += i + 2 < bytes.size() ? kAlphabet[group & 63] : '=';
  }
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  unsigned group = 0;
  int count = 0, padding = 0;
  for (char c : text) {
    if (is_space(c)) continue;
    int value = kValues[static_cast<unsigned char>(c)];
    if (c == '=' && count >= 2) {
      ++padding;
      value = 0;
    } else if (value < 0 || padding > 0) {
      return std::nullopt;
    }
    group = group << 6 | static_cast<unsigned>(value);
    if (++count < 4) continue;
    if (group & ((1u << 8 * padding) - 1)) return std::nullopt;
    out += static_cast<char>(group >> 16);
    if (padding < 2) out += static_cast<char>(group >> 8);
    if (padding < 1) out += static_cast<char>(group);
    group = 0;
    count = 0;
  }
  if (count != 0) return std::nullopt;
  return out;
}

}  // namespace schemas
