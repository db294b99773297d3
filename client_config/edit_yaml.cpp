#include <algorithm>
#include <optional>
#include <vector>

#include "client_config/edit.hpp"

namespace client_config {

namespace json = boost::json;

namespace {

constexpr std::string_view kBom = "\xEF\xBB\xBF";

struct Line {
  std::size_t begin = 0, end = 0;  // with its line end
  std::size_t indent = 0;
  std::string_view text;  // without indentation, line end, blanks behind
  bool blank() const { return text.empty() || text.front() == '#'; }
};

std::vector<Line> lines_of(std::string_view text) {
  std::vector<Line> lines;
  std::size_t at = text.starts_with(kBom) ? kBom.size() : 0;
  while (at < text.size()) {
    Line line;
    line.begin = at;
    line.end = std::min(text.find('\n', at), text.size() - 1) + 1;
    std::string_view rest = text.substr(at, line.end - at);
    rest = rest.substr(0, rest.find_last_not_of(" \t\r\n") + 1);
    line.indent = std::min(rest.find_first_not_of(' '), rest.size());
    line.text = rest.substr(line.indent);
    lines.push_back(line);
    at = line.end;
  }
  return lines;
}

// A key of a block mapping, and how its value begins in the same line.
struct Key {
  std::string name;
  std::string_view rest;  // without a comment
};

std::string_view without_comment(std::string_view text) {
  std::size_t begin = text.find_first_not_of(" \t");
  if (begin == text.npos || text[begin] == '#') return {};
  text.remove_prefix(begin);
  std::size_t comment = text.find(" #");
  if (text.front() != '"' && text.front() != '\'' && comment != text.npos)
    text = text.substr(0, comment);
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

std::optional<Key> key_of(std::string_view text) {
  if (text.starts_with("- ") || text == "-" || text.starts_with("? ")) return std::nullopt;
  Key key;
  std::size_t colon = 0;
  if (text.front() == '"' || text.front() == '\'') {
    std::size_t quote = text.find(text.front(), 1);
    if (quote == text.npos) return std::nullopt;
    key.name = text.substr(1, quote - 1);
    colon = text.find_first_not_of(" \t", quote + 1);
    if (colon == text.npos || text[colon] != ':') return std::nullopt;
  } else {
    if (std::string_view("{}[],&*!|>%@`").find(text.front()) != text.npos) return std::nullopt;
    do {
      colon = text.find(':', colon ? colon + 1 : 0);
      if (colon == text.npos) return std::nullopt;
    } while (colon + 1 < text.size() && text[colon + 1] != ' ' && text[colon + 1] != '\t');
    key.name = text.substr(0, text.substr(0, colon).find_last_not_of(" \t") + 1);
  }
  key.rest = without_comment(text.substr(colon + 1));
  return key;
}

// The lines that belong to the value of a key: those that are indented deeper, and lists, which may
// begin in the key's own column.
class Document {
 public:
  explicit Document(std::string_view text) : text_(text), lines_(lines_of(text)) { check(); }

  const std::vector<Line>& lines() const { return lines_; }

  [[noreturn]] void fail(std::size_t line, const std::string& what) const {
    throw EditError(line + 1, what);
  }

  // The line of `name` among the keys with this indentation in [from, to).
  std::optional<std::size_t> find(const std::string& name, std::size_t from, std::size_t to,
                                  std::size_t indent) const {
    std::optional<std::size_t> found;
    for (std::size_t i = from; i < to; ++i) {
      const Line& line = lines_[i];
      if (line.blank() || inside_[i] || line.indent != indent || is_marker(line)) continue;
      if (line.text.starts_with("- ") || line.text == "-") continue;  // a list in its key's column
      auto key = key_of(line.text);
      if (!key) fail(i, "expected `key:`");
      if (key->name != name) continue;
      if (found) fail(i, "\"" + name + "\" is there twice");
      found = i;
    }
    return found;
  }

  // Behind the last line of the value of the key at `line`, blanks and comments left out.
  std::size_t end_of(std::size_t line) const {
    std::size_t end = line + 1;
    for (std::size_t i = line + 1; i < lines_.size(); ++i) {
      bool deeper = lines_[i].indent > lines_[line].indent;
      if (inside_[i] || (!lines_[i].blank() && deeper))
        end = i + 1;
      else if (!lines_[i].blank())
        break;
    }
    return end;
  }

 private:
  static bool is_marker(const Line& line) {
    return line.indent == 0 && (line.text == "---" || line.text.starts_with("%"));
  }

  // Marks what is inside a scalar or a flow collection of several lines, and refuses what could be
  // read in two ways.
  void check() {
    inside_.assign(lines_.size(), false);
    bool begun = false;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const Line& line = lines_[i];
      if (line.blank()) continue;
      if (line.text.front() == '\t') fail(i, "a tab in the indentation");
      bool ends = line.indent == 0 && (line.text == "..." || line.text.starts_with("--- "));
      if (ends || (begun && is_marker(line))) fail(i, "more than one document");
      if (is_marker(line)) continue;
      bool nested = line.indent > 0 || line.text.starts_with("- ");
      if (!begun && nested) fail(i, "expected a mapping that begins in the first column");
      begun = true;
      if (line.indent == 0 && !key_of(line.text) && !line.text.starts_with("- "))
        fail(i, "expected `key:`");
      i = skip_value(i);
    }
  }

  // The last line of what begins in line `i`; those in between are marked.
  std::size_t skip_value(std::size_t i) {
    std::string_view rest = lines_[i].text;
    std::size_t indent = lines_[i].indent;
    while (rest.starts_with("- ")) {
      rest.remove_prefix(2);
      std::size_t blanks = std::min(rest.find_first_not_of(' '), rest.size());
      rest.remove_prefix(blanks);
      indent += 2 + blanks;
    }
    if (rest.empty()) return i;
    if (auto key = key_of(rest)) rest = key->rest;
    while (rest.starts_with("&") || rest.starts_with("!")) {  // an anchor or a tag
      std::size_t end = std::min(rest.find(' '), rest.size());
      rest = rest.substr(end);
      rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    }
    if (rest.empty()) return i;
    if (rest.front() == '|' || rest.front() == '>') return skip_block(i, indent);
    bool flow = rest.front() == '{' || rest.front() == '[';
    bool quoted = rest.front() == '"' || rest.front() == '\'';
    if (!flow && !quoted) return i;
    return skip_flow(i, static_cast<std::size_t>(rest.data() - text_.data()));
  }

  std::size_t skip_block(std::size_t i, std::size_t indent) {
    std::size_t last = i;
    for (std::size_t j = i + 1; j < lines_.size(); ++j) {
      if (!lines_[j].text.empty() && lines_[j].indent <= indent) break;
      if (!lines_[j].text.empty()) last = j;
    }
    std::fill(inside_.begin() + static_cast<std::ptrdiff_t>(i) + 1,
              inside_.begin() + static_cast<std::ptrdiff_t>(last) + 1, true);
    return last;
  }

  // A quoted scalar or a flow collection, which ends where its quotes and brackets do.
  std::size_t skip_flow(std::size_t i, std::size_t at) {
    int depth = 0;
    do {
      if (at >= text_.size()) fail(i, "a quote or a bracket without its end");
      char c = text_[at];
      if (c == '"' || c == '\'') {
        for (++at; at < text_.size() && text_[at] != c; ++at)
          if (c == '"' && text_[at] == '\\') ++at;
        if (at >= text_.size()) fail(i, "a quote without its end");
      } else if (c == '#' && (text_[at - 1] == ' ' || text_[at - 1] == '\n')) {
        at = std::min(text_.find('\n', at), text_.size() - 1);
      } else {
        depth += c == '{' || c == '[';
        depth -= c == '}' || c == ']';
      }
      ++at;
    } while (depth > 0);
    std::size_t last = i;
    while (last + 1 < lines_.size() && lines_[last + 1].begin < at) inside_[++last] = true;
    return last;
  }

  std::string_view text_;
  std::vector<Line> lines_;
  std::vector<bool> inside_;
};

struct Table {
  std::size_t line = 0, end = 0;  // of its key; behind its last line
  std::size_t indent = 2;         // of the entries
  std::optional<std::size_t> entry;
  std::optional<std::size_t> empty_value;  // where the {} is that stands for it
};

std::optional<Table> find_table(std::string_view text, const Document& document,
                                const std::string& name, const std::string& entry) {
  auto line = document.find(name, 0, document.lines().size(), 0);
  if (!line) return std::nullopt;
  Table table;
  table.line = *line;
  table.end = document.end_of(*line);
  std::string_view rest = key_of(document.lines()[*line].text)->rest;
  if (rest == "{}") {
    table.empty_value = static_cast<std::size_t>(rest.data() - text.data());
    return table;
  }
  if (!rest.empty())
    document.fail(*line, "expected `" + name + ":` with its entries in the lines below");
  for (std::size_t i = *line + 1; i < table.end; ++i) {
    if (document.lines()[i].blank()) continue;
    table.indent = document.lines()[i].indent;
    if (document.lines()[i].text.starts_with("-"))
      document.fail(i, "expected entries by name, not a list");
    break;
  }
  bool list_in_its_column =
      table.end < document.lines().size() && document.lines()[table.end].text.starts_with("- ");
  if (list_in_its_column) document.fail(table.end, "expected entries by name, not a list");
  table.entry = document.find(entry, *line + 1, table.end, table.indent);
  return table;
}

// Besides the one that was found.
bool has_entries(const Document& document, const Table& table) {
  for (std::size_t i = table.line + 1; i < table.end; ++i) {
    bool own = i >= *table.entry && i < document.end_of(*table.entry);
    if (!own && !document.lines()[i].blank()) return true;
  }
  return false;
}

// The entry's lines. A JSON string, or a list of them, is one of YAML too.
std::string block(const Entry& entry, std::size_t indent, std::size_t step,
                  const std::string& line_end) {
  std::string text = std::string(indent, ' ') + entry.name + ":" + line_end;
  for (const auto& field : entry.fields)
    text += std::string(indent + step, ' ') + std::string(field.key()) + ": " +
            json::serialize(field.value()) + line_end;
  return text;
}

}  // namespace

std::string with_yaml_entry(std::string_view text, const Entry& entry) {
  Document document(text);
  const auto& lines = document.lines();
  std::string line_end = style_of(text).line_end;
  auto table = find_table(text, document, entry.table, entry.name);
  if (!table) {
    std::string before(text);
    bool fresh_line = text.empty() || text == kBom || text.ends_with('\n');
    return before + (fresh_line ? "" : line_end) + entry.table + ":" + line_end +
           block(entry, 2, 2, line_end);
  }
  std::size_t step = std::max<std::size_t>(table->indent, 2);
  std::string put = block(entry, table->indent, step, line_end);
  std::size_t from = lines[table->line].end, to = from;
  if (table->entry) {
    from = lines[*table->entry].begin;
    to = lines[document.end_of(*table->entry) - 1].end;
  }
  std::string before(text.substr(0, from)), after(text.substr(to));
  if (table->empty_value) {
    std::size_t at = *table->empty_value, blank = text[at - 1] == ' ' ? 1 : 0;
    before.erase(at - blank, 2 + blank);
  }
  if (!before.ends_with('\n')) before += line_end;
  bool ends_open = after.empty() && !text.ends_with('\n');
  if (ends_open) put.resize(put.size() - line_end.size());
  return before + put + after;
}

std::string without_yaml_entry(std::string_view text, const std::string& table,
                               const std::string& name) {
  Document document(text);
  auto found = find_table(text, document, table, name);
  if (!found || !found->entry) return std::string(text);
  const auto& lines = document.lines();
  std::size_t from = lines[*found->entry].begin;
  std::size_t to = lines[document.end_of(*found->entry) - 1].end;
  std::string before(text.substr(0, from)), after(text.substr(to));
  if (!has_entries(document, *found)) {  // a key without a value is null, which clients refuse
    std::size_t key_end = text.find(table, lines[found->line].begin) + table.size();
    before.insert(text.find(':', key_end) + 1, " {}");
  }
  return before + after;
}

}  // namespace client_config
