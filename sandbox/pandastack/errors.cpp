#include "sandbox/pandastack/errors.hpp"

#include <algorithm>
#include <boost/json.hpp>

#include "schemas/codec.hpp"
#include "schemas/parse.hpp"
#include "schemas/utf8.hpp"

namespace sandbox::pandastack {

namespace json = boost::json;

namespace {

constexpr std::size_t kMaxMessage = 500;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// What a terminal and a JSON string can take.
std::string in_one_line(std::string_view text) {
  std::string line;
  while (!text.empty() && line.size() <= kMaxMessage) {
    std::size_t size = schemas::utf8_sequence(text);
    unsigned char first = static_cast<unsigned char>(text[0]);
    if (size == 0)
      line += '?';
    else if (first >= 0x20 && first != 0x7f)
      line += text.substr(0, size);
    else if (!line.empty() && line.back() != ' ')
      line += ' ';
    text.remove_prefix(std::max<std::size_t>(size, 1));
  }
  while (line.ends_with(' ')) line.pop_back();
  return schemas::clipped(line, kMaxMessage - 3);  // which adds an ellipsis of 3 bytes
}

std::string text_of(const json::object& body, std::string_view key) {
  const json::value* found = body.if_contains(key);
  if (!found) return {};
  if (found->is_string()) return std::string(found->get_string());
  return found->is_object() ? text_of(found->get_object(), "message") : std::string();
}

std::string seconds_of(const Error& failure) {
  if (!failure.retry_after) return " later";
  return " in " + std::to_string(failure.retry_after->count()) + " s";
}

}  // namespace

std::string readable(const Error& failure) {
  const std::string said = failure.message.empty() ? "no reason given" : failure.message;
  switch (failure.status) {
    case 401:
      return "PandaStack does not accept the key (" + said +
             "): the operator has to set PANDASTACK_API_KEY to a valid one.";
    case 402:
      return "PandaStack's plan does not include this: " + said + ".";
    case 403:
      return "PandaStack does not allow this: " + said + ".";
    case 429:
      return "PandaStack takes no more at the moment (" + said + "): try again" +
             seconds_of(failure) + ", or close sessions that are not needed with close_session.";
    case 503:
    case 507:
      return "PandaStack has no room at the moment (" + said + "): try again" +
             seconds_of(failure) + ".";
    default:
      return std::string("PandaStack: ") + failure.what() + ".";
  }
}

std::string message_of(std::string_view body) {
  boost::system::error_code malformed;
  json::value parsed = schemas::parse(body, malformed);
  if (malformed || !parsed.is_object()) return in_one_line(body);
  std::string message;
  for (const char* key : {"error", "message", "detail"}) {
    std::string text = text_of(parsed.get_object(), key);
    if (text.empty() || text == message) continue;
    message += (message.empty() ? "" : ": ") + text;
  }
  return message.empty() ? in_one_line(body) : in_one_line(message);
}

bool is_warm_up(std::string_view message) {
  if (contains(message, "connect: connection refused")) return true;
  bool dials = contains(message, "dial");
  return dials && (contains(message, "no route to host") || contains(message, "i/o timeout"));
}

Outcome outcome_of(int status, std::string_view message, bool has_retry_after) {
  bool refused = status < 500 || status == 501 || status == 507 || is_warm_up(message) ||
                 (status == 503 && has_retry_after) ||
                 contains(message, "no available compute node");
  return refused ? Outcome::refused : Outcome::unknown;
}

}  // namespace sandbox::pandastack
