#include "tests/transcripts/runner/pattern.hpp"

namespace transcripts {

namespace {

constexpr std::string_view kRest = "...";
constexpr std::size_t kTellingLength = 8;

std::string as_text(const json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : json::serialize(value);
}

struct Placeholder {
  std::size_t begin;
  std::size_t end;
  std::string name;
};

std::optional<Placeholder> find_placeholder(std::string_view text) {
  std::size_t begin = text.find("{{");
  if (begin == std::string_view::npos) return std::nullopt;
  std::size_t end = text.find("}}", begin);
  if (end == std::string_view::npos) return std::nullopt;
  return Placeholder{begin, end + 2, std::string(text.substr(begin + 2, end - begin - 2))};
}

// Whether `got` reads like `pattern`; an unbound placeholder takes the shortest text that will do.
bool text_matches(std::string_view pattern, std::string_view got, Captures& captures) {
  auto hole = find_placeholder(pattern);
  if (!hole) return pattern == got;
  std::string_view literal = pattern.substr(0, hole->begin);
  if (!got.starts_with(literal)) return false;
  got.remove_prefix(literal.size());
  std::string_view rest = pattern.substr(hole->end);

  auto bound = captures.find(hole->name);
  if (bound != captures.end()) {
    std::string text = as_text(bound->second);
    return got.starts_with(text) && text_matches(rest, got.substr(text.size()), captures);
  }
  for (std::size_t size = 0; size <= got.size(); ++size) {
    Captures attempt = captures;
    if (hole->name != "*") attempt[hole->name] = json::value(got.substr(0, size));
    if (!text_matches(rest, got.substr(size), attempt)) continue;
    captures = std::move(attempt);
    return true;
  }
  return false;
}

// The placeholder that is the whole of a string, if it is.
std::optional<std::string> whole_placeholder(const json::value& pattern) {
  if (!pattern.is_string()) return std::nullopt;
  std::string_view text = pattern.get_string();
  auto hole = find_placeholder(text);
  if (!hole || hole->begin != 0 || hole->end != text.size()) return std::nullopt;
  return hole->name;
}

class Comparison {
 public:
  explicit Comparison(Captures& captures) : captures_(captures) {}

  bool same(const json::value& pattern, const json::value& got, const std::string& path) {
    if (auto name = whole_placeholder(pattern)) {
      if (*name == "*") return true;
      auto [bound, is_new] = captures_.emplace(*name, got);
      return is_new || bound->second == got || fail(path, bound->second, got);
    }
    if (pattern.is_object() && got.is_object())
      return same_members(pattern.get_object(), got.get_object(), path);
    if (pattern.is_array() && got.is_array())
      return same_elements(pattern.get_array(), got.get_array(), path);
    if (pattern.is_string() && got.is_string())
      return text_matches(pattern.get_string(), got.get_string(), captures_) ||
             fail(path, pattern, got);
    return pattern == got || fail(path, pattern, got);
  }

  std::string difference;

 private:
  bool same_members(const json::object& pattern, const json::object& got, const std::string& path) {
    for (const auto& member : pattern) {
      if (member.key() == kRest) continue;
      std::string where = path + "." + std::string(member.key());
      const json::value* value = got.if_contains(member.key());
      if (!value) return fail(where, member.value(), "nothing");
      if (!same(member.value(), *value, where)) return false;
    }
    for (const auto& member : got)
      if (!pattern.contains(member.key()) && !pattern.contains(kRest))
        return fail(path + "." + std::string(member.key()), "nothing", member.value());
    return true;
  }

  bool same_elements(const json::array& pattern, const json::array& got, const std::string& path) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < pattern.size(); ++i) {
      if (pattern[i] == json::value(kRest)) {
        std::size_t after = pattern.size() - i - 1;
        if (got.size() >= at + after) at = got.size() - after;
        continue;
      }
      std::string where = path + "[" + std::to_string(at) + "]";
      if (at == got.size()) return fail(where, pattern[i], "nothing");
      if (!same(pattern[i], got[at++], where)) return false;
    }
    return at == got.size() || fail(path + "[" + std::to_string(at) + "]", "nothing", got[at]);
  }

  bool fail(const std::string& path, const json::value& expected, const json::value& got) {
    difference = path + "\n    expected " + json::serialize(expected) + "\n    got      " +
                 json::serialize(got);
    return false;
  }

  Captures& captures_;
};

}  // namespace

std::optional<std::string> difference(const json::value& pattern, const json::value& got,
                                      Captures& captures) {
  Captures attempt = captures;
  Comparison comparison(attempt);
  if (!comparison.same(pattern, got, "message")) return comparison.difference;
  captures = std::move(attempt);
  return std::nullopt;
}

std::string filled_in(std::string_view text, const Captures& captures) {
  std::string out;
  while (auto hole = find_placeholder(text)) {
    auto bound = captures.find(hole->name);
    if (bound == captures.end()) {  // not a placeholder of ours: code may well hold braces
      out += text.substr(0, hole->begin + 2);
      text.remove_prefix(hole->begin + 2);
      continue;
    }
    bool quoted = hole->begin > 0 && text[hole->begin - 1] == '"' && hole->end < text.size() &&
                  text[hole->end] == '"';
    std::string value = json::serialize(bound->second);
    if (quoted) {
      out += text.substr(0, hole->begin - 1);
      out += value;
    } else {
      if (bound->second.is_string()) value = value.substr(1, value.size() - 2);
      out += text.substr(0, hole->begin);
      out += value;
    }
    text.remove_prefix(hole->end + (quoted ? 1 : 0));
  }
  out += text;
  return out;
}

std::string with_placeholders(std::string text, const Captures& captures) {
  for (const auto& [name, value] : captures) {
    if (!value.is_string() || value.get_string().size() < kTellingLength) continue;
    std::string escaped = json::serialize(value);
    escaped = escaped.substr(1, escaped.size() - 2);
    for (std::size_t at = text.find(escaped); at != std::string::npos; at = text.find(escaped, at))
      text.replace(at, escaped.size(), "{{" + name + "}}");
  }
  return text;
}

}  // namespace transcripts
