#include "transport/http/mcp_headers.hpp"

#include <algorithm>
#include <charconv>

#include "mcp/base64.hpp"

namespace transport::http {

namespace json = boost::json;

namespace {

constexpr std::string_view kBlank = " \t";
constexpr std::size_t kShown = 64;  // of a client's text, in a message

std::string_view trimmed(std::string_view text) {
  std::size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// What is before the separator; the rest stays in `text`.
std::string_view next_part(std::string_view& text, char separator) {
  std::size_t end = std::min(text.find(separator), text.size());
  std::string_view part = trimmed(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

// "q=0" and "q=0.000" say: not this one (RFC 9110, section 12.4.2).
bool is_refused(std::string_view parameters) {
  while (!parameters.empty()) {
    std::string parameter = lower_case(next_part(parameters, ';'));
    if (parameter.starts_with("q="))
      return parameter.find_first_not_of("0.", 2) == std::string::npos;
  }
  return false;
}

// The member of params that Mcp-Name repeats.
std::string_view name_member(std::string_view method) {
  if (method == "tools/call" || method == "prompts/get") return "name";
  if (method == "resources/read") return "uri";
  return {};
}

const json::value* param(const json::object& message, std::string_view member) {
  const json::value* params = message.if_contains("params");
  const json::object* fields = params ? params->if_object() : nullptr;
  return fields ? fields->if_contains(member) : nullptr;
}

// Base64 may hold any bytes, and a message is UTF-8.
std::string shown(std::string_view text) {
  bool longer = text.size() > kShown;
  std::string out(text.substr(0, kShown));
  for (char& c : out)
    if (c < 0x20 || c > 0x7e) c = '?';
  return "'" + out + (longer ? "…'" : "'");
}

// Integers count by their value: 42 and 42.0 are the same.
bool is_number(std::string_view text, double value) {
  double parsed = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), parsed);
  return failed == std::errc() && end == text.data() + text.size() && parsed == value;
}

bool same(std::string_view header, const json::value& value) {
  if (const json::string* text = value.if_string()) return header == std::string_view(*text);
  if (const bool* flag = value.if_bool()) return header == (*flag ? "true" : "false");
  if (value.is_number()) return is_number(header, value.to_number<double>());
  return false;
}

std::optional<std::string> compare(const Request& request, const std::string& name,
                                   const json::value& value) {
  const std::string* header = request.header(name);
  if (!header && value.is_null()) return std::nullopt;
  if (!header) return "The header " + name + " is missing; it repeats what the body says";
  if (value.is_null())
    return "The header " + name + " repeats something that the body does not say";
  std::optional<std::string> text = decoded(*header);
  if (!text)
    return "The header " + name + " cannot be read: base64 that is broken, or other characters";
  if (same(*text, value)) return std::nullopt;
  return "The header " + name + " is " + shown(*text) + ", the body says something else";
}

}  // namespace

Accepts accepted(const Request& request) {
  const std::string* header = request.header("Accept");
  Accepts accepts;
  std::string_view ranges = header ? std::string_view(*header) : "*/*";
  while (!ranges.empty()) {
    std::string_view range = next_part(ranges, ',');
    std::string type = lower_case(next_part(range, ';'));
    if (is_refused(range)) continue;
    accepts.json |= type == "*/*" || type == "application/*" || type == "application/json";
    accepts.events |= type == "*/*" || type == "text/*" || type == "text/event-stream";
  }
  return accepts;
}

bool has_json_body(const Request& request) {
  const std::string* header = request.header("Content-Type");
  if (!header) return false;
  std::string_view text = *header;
  return lower_case(next_part(text, ';')) == "application/json";
}

std::optional<std::string> decoded(std::string_view value) {
  constexpr std::string_view kBegin = "=?base64?", kEnd = "?=";
  value = trimmed(value);
  bool plain =
      std::ranges::all_of(value, [](char c) { return (c >= 0x20 && c <= 0x7E) || c == '\t'; });
  if (!plain) return std::nullopt;
  bool wrapped = value.size() >= kBegin.size() + kEnd.size() && value.starts_with(kBegin) &&
                 value.ends_with(kEnd);
  if (!wrapped) return std::string(value);
  value.remove_prefix(kBegin.size());
  value.remove_suffix(kEnd.size());
  return mcp::base64_decode(value);
}

std::optional<std::string> header_mismatch(const Request& request, const json::object& message,
                                           const std::vector<mcp::MirroredArgument>& mirrored) {
  if (!request.header(kVersionHeader)) {
    return "The header MCP-Protocol-Version is missing; it repeats "
           "params._meta[\"io.modelcontextprotocol/protocolVersion\"]";
  }
  const json::value& method = message.at("method");
  if (auto problem = compare(request, "Mcp-Method", method)) return problem;
  std::string_view member = name_member(method.get_string());
  if (!member.empty()) {
    const json::value* name = param(message, member);
    // A name that is no string is the method's to refuse.
    json::value value = name && name->is_string() ? *name : json::value();
    bool other_kind = name && !name->is_string();
    if (auto problem = other_kind ? std::nullopt : compare(request, "Mcp-Name", value))
      return problem;
  }
  for (const mcp::MirroredArgument& one : mirrored) {
    json::value value = one.value.value_or(nullptr);
    if (auto problem = compare(request, "Mcp-Param-" + one.header, value)) return problem;
  }
  return std::nullopt;
}

}  // namespace transport::http
