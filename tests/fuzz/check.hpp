#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

// What has to hold for every input. The fuzzer keeps the input for which it does not.
inline void check(bool holds, const char* what, std::string_view seen = {}) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n%.*s\n", what, static_cast<int>(seen.size()),
               seen.data());
  std::abort();
}

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// What is before the separator; the rest stays in `text`.
inline std::string_view cut(std::string_view& text, std::string_view separator) {
  std::size_t at = text.find(separator);
  std::string_view part = text.substr(0, at);
  text.remove_prefix(at == text.npos ? text.size() : at + separator.size());
  return part;
}

// Something we send as JSON: valid, which includes that it is UTF-8.
inline boost::json::value well_formed(std::string_view text) {
  boost::json::parse_options deep;
  deep.max_depth = 256;
  boost::system::error_code malformed;
  boost::json::value value = boost::json::parse(text, malformed, {}, deep);
  check(!malformed, "what we send is JSON", text);
  return value;
}

// One message to a client, or what answers a batch.
inline void check_message(const boost::json::value& message) {
  if (const boost::json::array* batch = message.if_array()) {
    check(!batch->empty(), "a batch is never answered by an empty one");
    for (const boost::json::value& one : *batch) check_message(one);
    return;
  }
  check(message.is_object() && message.get_object().contains("jsonrpc"), "JSON-RPC",
        boost::json::serialize(message));
  const boost::json::object& fields = message.get_object();
  bool answer = fields.contains("result") != fields.contains("error");
  check(answer || fields.contains("method"), "either a result, an error or a request",
        boost::json::serialize(message));
}

// A header that nothing can break out of (RFC 9110, section 5.5).
inline void check_header(std::string_view name, std::string_view value) {
  check(!name.empty(), "a header has a name");
  for (char c : name) check(c > ' ' && c < 0x7f && c != ':', "a header's name is a token", name);
  for (unsigned char c : value)
    check((c >= ' ' && c != 0x7f) || c == '\t', "a header's value has no control characters",
          value);
}
