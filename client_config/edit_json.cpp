#include <algorithm>

#include "client_config/edit.hpp"
#include "client_config/jsonc.hpp"

namespace client_config {

namespace json = boost::json;

namespace {

using Member = JsonObject::Member;

// A value over several lines, the first of which begins where it is put.
std::string pretty(const json::value& value, const Style& style, const std::string& indent) {
  const json::object* object = value.if_object();
  if (!object) return json::serialize(value);
  std::string text = "{";
  std::string inner = indent + style.indent;
  for (const auto& part : *object) {
    text += (text.size() > 1 ? "," : "") + style.line_end + inner;
    text += json::serialize(json::string(part.key())) + ": " + pretty(part.value(), style, inner);
  }
  return text + style.line_end + indent + "}";
}

std::string compact(const json::value& value) { return json::serialize(value); }

const Member* find(const JsonObject& object, const std::string& key) {
  auto found = std::ranges::find(object.members, key, &Member::key);
  return found == object.members.end() ? nullptr : &*found;
}

std::size_t line_begin(std::string_view text, std::size_t at) {
  std::size_t end = text.substr(0, at).rfind('\n');
  return end == text.npos ? 0 : end + 1;
}

std::string indent_at(std::string_view text, std::size_t at) {
  std::size_t begin = line_begin(text, at);
  if (text.substr(begin).starts_with("\xEF\xBB\xBF")) begin += 3;
  return std::string(text.substr(begin, text.find_first_not_of(" \t", begin) - begin));
}

bool begins_its_line(std::string_view text, std::size_t at) {
  std::size_t begin = line_begin(text, at);
  return begin > 0 && text.find_first_not_of(" \t", begin) == at;
}

// Behind the object's brace and what is said about it in the same line.
std::size_t end_of_opening(std::string_view text, const JsonObject& object) {
  std::size_t at = object.open + 1;
  for (;;) {
    std::size_t next = text.find_first_not_of(" \t\r", at);
    std::string_view rest = next == text.npos ? std::string_view() : text.substr(next);
    if (rest.starts_with("//")) {
      std::size_t end = text.find('\n', next);
      return text[end - 1] == '\r' ? end - 1 : end;
    }
    if (!rest.starts_with("/*")) return at;
    std::size_t end = text.find("*/", next) + 2;
    if (text.substr(next, end - next).find('\n') != text.npos) return at;
    at = end;
  }
}

std::string put_member(std::string_view text, const JsonObject& object, const std::string& key,
                       const json::value& value) {
  Style style = style_of(text);
  std::string name = json::serialize(json::string(key)) + ": ";
  bool empty = object.members.empty();
  std::string_view inside = text.substr(object.open, object.close - object.open);
  bool one_line = inside.find('\n') == inside.npos;
  if (one_line && !empty) {
    std::size_t at = object.members.front().begin;
    return std::string(text.substr(0, at)) + name + compact(value) + ", " +
           std::string(text.substr(at));
  }
  std::string outer = indent_at(text, object.open), inner = outer + style.indent;
  if (!empty && begins_its_line(text, object.members.front().begin))
    inner = indent_at(text, object.members.front().begin);
  std::size_t at = end_of_opening(text, object);
  std::string put = style.line_end + inner + name + pretty(value, style, inner);
  if (!empty) put += ",";
  if (one_line) put += style.line_end + outer;
  return std::string(text.substr(0, at)) + put + std::string(text.substr(at));
}

std::string whole_file(std::string_view text, const json::value& value) {
  Style style = style_of(text);
  bool fresh_line = text.empty() || text.ends_with('\n') || text.ends_with("\xEF\xBB\xBF");
  return std::string(text) + (fresh_line ? "" : style.line_end) + pretty(value, style, "") +
         style.line_end;
}

// Null: not there. Throws EditError when it is no object.
const JsonObject* table_of(std::string_view text, const JsonText& scanned,
                           const std::string& table) {
  const Member* member = find(scanned.objects[*scanned.root], table);
  if (!member) return nullptr;
  if (!member->object)
    throw EditError(line_of(text, member->value), "expected an object as \"" + table + "\"");
  return &scanned.objects[*member->object];
}

}  // namespace

std::string with_json_entry(std::string_view text, const Entry& entry) {
  JsonText scanned = scan_json(text);
  json::object table;
  table[entry.name] = entry.fields;
  if (!scanned.root) {
    json::object file;
    file[entry.table] = std::move(table);
    return whole_file(text, file);
  }
  const JsonObject* object = table_of(text, scanned, entry.table);
  if (!object) return put_member(text, scanned.objects[*scanned.root], entry.table, table);
  const Member* old = find(*object, entry.name);
  if (!old) return put_member(text, *object, entry.name, entry.fields);
  bool own_line = begins_its_line(text, old->begin);
  std::string value = own_line ? pretty(entry.fields, style_of(text), indent_at(text, old->begin))
                               : compact(entry.fields);
  return std::string(text.substr(0, old->value)) + value + std::string(text.substr(old->end));
}

std::string without_json_entry(std::string_view text, const std::string& table,
                               const std::string& name) {
  JsonText scanned = scan_json(text);
  const JsonObject* object = scanned.root ? table_of(text, scanned, table) : nullptr;
  const Member* old = object ? find(*object, name) : nullptr;
  if (!old) return std::string(text);
  std::string result(text);
  std::size_t begin = old->begin, end = old->comma.value_or(old->end - 1) + 1;
  bool is_last = old == &object->members.back();
  if (begins_its_line(text, begin)) {
    begin = line_begin(text, begin) - 1;
    if (begin > 0 && text[begin - 1] == '\r') --begin;
  } else if (!is_last) {
    end = text.find_first_not_of(" \t", end);
  }
  result.erase(begin, end - begin);
  // What is now the last one had its comma for our sake.
  if (is_last && !old->comma && object->members.size() > 1)
    result.erase(*object->members[object->members.size() - 2].comma, 1);
  return result;
}

}  // namespace client_config
