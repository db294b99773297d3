#include <algorithm>
#include <optional>
#include <vector>

#include "client_config/edit.hpp"

namespace client_config {

namespace json = boost::json;

namespace {

// A header or an assignment, from the first of its lines to the last (arrays and strings may take
// several).
struct Statement {
  std::size_t begin = 0, end = 0;  // of whole lines
  bool is_header = false;
  bool is_array = false;          // [[...]]
  std::vector<std::string> path;  // of the header, or of the assigned key
};

// A name may be written with escapes. What is none of JSON's is none of ours either.
std::string unquoted(std::string_view key) {
  boost::system::error_code other;
  json::value name = json::parse(key, other);
  if (!other && name.is_string()) return std::string(name.get_string());
  return std::string(key.substr(1, key.size() - 2));
}

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::vector<Statement> all() {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    std::vector<Statement> statements;
    while (at_ < text_.size()) {
      Statement statement;
      statement.begin = at_;
      blanks();
      bool something = at_ < text_.size() && std::string_view("#\r\n").find(text_[at_]) == npos;
      if (something && text_[at_] == '[')
        header(statement);
      else if (something)
        assignment(statement);
      line_end();
      statement.end = at_;
      if (something) statements.push_back(std::move(statement));
    }
    return statements;
  }

 private:
  static constexpr std::size_t npos = std::string_view::npos;

  [[noreturn]] void fail(const std::string& what) const {
    throw EditError(line_of(text_, at_), what);
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\n'; }
  void blanks() { at_ = std::min(text_.find_first_not_of(" \t", at_), text_.size()); }
  void expect(char c) {
    if (at_ >= text_.size() || text_[at_] != c) fail(std::string("expected ") + c);
    ++at_;
  }

  // The rest of a line: blanks, a comment.
  void line_end() {
    blanks();
    if (peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    if (at_ >= text_.size()) return;
    expect('\n');
  }

  void header(Statement& statement) {
    statement.is_header = true;
    expect('[');
    statement.is_array = peek() == '[';
    if (statement.is_array) ++at_;
    statement.path = key();
    expect(']');
    if (statement.is_array) expect(']');
  }

  void assignment(Statement& statement) {
    statement.path = key();
    expect('=');
    value();
  }

  // a."b c".d; blanks around the dots.
  std::vector<std::string> key() {
    std::vector<std::string> path;
    do {
      blanks();
      std::size_t begin = at_;
      if (peek() == '"' || peek() == '\'') {
        string();
        path.push_back(unquoted(text_.substr(begin, at_ - begin)));
      } else {
        auto bare = [](char c) {
          return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                 c == '_' || c == '-';
        };
        while (at_ < text_.size() && bare(text_[at_])) ++at_;
        if (at_ == begin) fail("expected a key");
        path.emplace_back(text_.substr(begin, at_ - begin));
      }
      blanks();
    } while (peek() == '.' && ++at_);
    return path;
  }

  void string() {
    char quote = text_[at_];
    std::string triple(3, quote);
    bool is_long = text_.substr(at_).starts_with(triple);
    at_ += is_long ? 3 : 1;
    for (;;) {
      if (at_ >= text_.size() || (!is_long && text_[at_] == '\n')) fail("a string without an end");
      if (is_long && text_.substr(at_).starts_with(triple)) break;
      if (!is_long && text_[at_] == quote) break;
      at_ += quote == '"' && text_[at_] == '\\' ? 2 : 1;
    }
    at_ += is_long ? 3 : 1;
    while (is_long && peek() == quote) ++at_;  // up to two quotes may stand before the last three
  }

  void value() {
    std::string open;  // the brackets we are in
    bool any = false;
    for (;;) {
      blanks();
      if (at_ >= text_.size()) break;
      char c = text_[at_];
      if (c == '\n' || c == '\r' || c == '#') {
        if (open.empty()) break;
        line_end();
        continue;
      }
      any = true;
      if (c == '"' || c == '\'') {
        string();
        continue;
      }
      if (c == '[' || c == '{') open += c;
      if (c == ']' || c == '}') {
        if (open.empty() || open.back() != (c == ']' ? '[' : '{'))
          fail(std::string("unexpected ") + c);
        open.pop_back();
      }
      ++at_;
    }
    if (!open.empty()) fail("a bracket without its end");
    if (!any) fail("expected a value");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

struct Place {
  std::size_t begin = 0, end = 0;
};

bool starts_with(const std::vector<std::string>& path, const std::vector<std::string>& prefix) {
  return path.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), path.begin());
}

// Where [table.name] is, with its sub-tables and without what is said about the table behind it.
std::optional<Place> find(std::string_view text, const std::string& table,
                          const std::string& name) {
  std::optional<Place> place;
  std::vector<std::string> header;
  const std::vector<std::string> own{table, name};
  bool inside = false;
  for (const Statement& statement : Scanner(text).all()) {
    auto fail = [&](const std::string& what) {
      throw EditError(line_of(text, statement.begin), what);
    };
    std::vector<std::string> path = statement.path;
    if (statement.is_header)
      header = path;
    else
      path.insert(path.begin(), header.begin(), header.end());
    bool ours = starts_with(path, own);
    if (statement.is_header) {
      bool array_of_them = statement.is_array && (path == own || path == std::vector{table});
      if (array_of_them) fail("expected a table, not an array of tables");
      if (ours && place && !inside) fail("[" + table + "." + name + "] is there in two places");
      inside = ours;
    } else if (path == std::vector{table} || (ours && !inside)) {
      fail("expected [" + table + "." + name + "] as a table of its own");
    }
    if (!inside) continue;
    if (!place) place = Place{statement.begin, statement.end};
    place->end = statement.end;
  }
  return place;
}

std::string block(const Entry& entry, const std::string& line_end) {
  std::string text = "[" + entry.table + "." + entry.name + "]" + line_end;
  // A JSON string, or a list of them, is one of TOML too.
  for (const auto& field : entry.fields)
    text += std::string(field.key()) + " = " + json::serialize(field.value()) + line_end;
  return text;
}

}  // namespace

std::string with_toml_entry(std::string_view text, const Entry& entry) {
  auto old = find(text, entry.table, entry.name);
  std::string line_end = style_of(text).line_end;
  std::string put = block(entry, line_end);
  if (old) {
    bool at_end = old->end == text.size() && !text.ends_with('\n');
    if (at_end) put.resize(put.size() - line_end.size());
    return std::string(text.substr(0, old->begin)) + put + std::string(text.substr(old->end));
  }
  std::string before(text);
  bool empty = text.empty() || text == "\xEF\xBB\xBF";
  if (!empty && !text.ends_with('\n')) before += line_end;
  return before + (empty ? "" : line_end) + put;
}

std::string without_toml_entry(std::string_view text, const std::string& table,
                               const std::string& name) {
  auto old = find(text, table, name);
  if (!old) return std::string(text);
  std::string before(text.substr(0, old->begin)), after(text.substr(old->end));
  // The empty line that set it off.
  for (const char* empty_line : {"\r\n\r\n", "\n\n"}) {
    std::string_view line(empty_line);
    if (!before.ends_with(line)) continue;
    before.resize(before.size() - line.size() / 2);
    break;
  }
  return before + after;
}

}  // namespace client_config
