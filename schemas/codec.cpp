#include "schemas/codec.hpp"

namespace schemas {

std::string clipped(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;  // whole UTF-8
  return std::string(text.substr(0, end)) + "…";
}

namespace detail {

namespace {

// Longer than any number that fits a double, short enough to parse for nothing.
constexpr std::size_t kLongestNumber = 64;
constexpr double kExactDouble = 9007199254740992.0;  // 2^53

}  // namespace

void fail(const std::string& path, std::string_view what) {
  throw DecodeError((path.empty() ? "value" : path) + ": " + std::string(what));
}

void expect(bool ok, const std::string& path, std::string_view what) {
  if (!ok) fail(path, what);
}

void fail_choice(const std::string& path, const std::vector<std::string_view>& choices) {
  std::string text = "expected one of";
  for (std::string_view choice : choices) text.append(" ").append(choice);
  fail(path, text);
}

void fail_unknown(std::string_view name, const std::vector<DescribedMember>& known) {
  std::string text =
      known.empty() ? "unknown argument; none are known" : "unknown argument; known: ";
  for (const DescribedMember& member : known) {
    if (&member != &known.front()) text += ", ";
    text += member.name;
  }
  fail("arguments." + clipped(name), text);
}

json::value unquoted(const json::value& in) {
  std::string_view text = in.get_string();
  if (text.size() > kLongestNumber) return in;
  boost::system::error_code bad;
  json::value out = json::parse(text, bad);  // ranges are checked where it is read
  return !bad && (out.is_number() || out.is_bool()) ? out : in;
}

std::optional<Whole> whole(const json::value& in, const std::string& path) {
  if (const std::int64_t* number = in.if_int64())
    return Whole{*number < 0, static_cast<std::uint64_t>(*number)};
  if (const std::uint64_t* number = in.if_uint64()) return Whole{false, *number};
  const double* number = in.if_double();
  if (!number || *number != std::trunc(*number)) return std::nullopt;
  expect(std::abs(*number) <= kExactDouble, path, "integer out of range");
  return Whole{*number < 0, static_cast<std::uint64_t>(static_cast<std::int64_t>(*number))};
}

}  // namespace detail

}  // namespace schemas
