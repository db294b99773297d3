#include "tools/python_lines.hpp"

#include <algorithm>
#include <cctype>

namespace tools {

namespace {

class Scanner {
 public:
  explicit Scanner(std::string_view source) : rest_(source) {}

  std::vector<PythonLine> all() {
    std::vector<PythonLine> lines;
    while (!rest_.empty()) lines.push_back(next());
    return lines;
  }

 private:
  PythonLine next() {
    PythonLine line;
    std::size_t end = std::min(rest_.find_first_of("\r\n"), rest_.size());  // as Python ends them
    line.text = rest_.substr(0, end);
    end += rest_.substr(end).starts_with("\r\n") ? 1 : 0;
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    line.in_string = !quote_.empty();
    line.begins = !line.in_string && depth_ == 0 && !continued_;
    continued_ = false;
    for (std::string_view text = line.text; !text.empty();) text.remove_prefix(step(text, line));
    if (quote_.size() == 1 && !continued_) quote_ = {};  // such a string ends with its line
    return line;
  }

  // How much of the text it has read.
  std::size_t step(std::string_view text, PythonLine& line) {
    char c = text.front();
    if (c == '\\') {
      continued_ = text.size() == 1;
      return std::min<std::size_t>(2, text.size());
    }
    if (!quote_.empty()) {
      if (!text.starts_with(quote_)) return 1;
      line.code += '"';
      return std::exchange(quote_, {}).size();
    }
    if (c == '#') return text.size();
    line.code += c == '\'' ? '"' : c;
    if (c == '"' || c == '\'') {
      bool triple = text.starts_with(std::string(3, c));
      quote_ = text.substr(0, triple ? 3 : 1);
      return quote_.size();
    }
    if (c == '(' || c == '[' || c == '{') ++depth_;
    if (c == ')' || c == ']' || c == '}') depth_ = std::max(depth_ - 1, 0);
    return 1;
  }

  std::string_view rest_;
  std::string_view quote_;  // that ends the string we are in
  int depth_ = 0;
  bool continued_ = false;
};

constexpr std::string_view kKeywords[] = {
    "and",    "as",  "assert", "async",  "await",  "break", "case",     "class",  "continue",
    "def",    "del", "elif",   "else",   "except", "for",   "from",     "global", "if",
    "import", "in",  "is",     "lambda", "match",  "not",   "or",       "pass",   "raise",
    "return", "try", "type",   "while",  "with",   "yield", "nonlocal", "finally"};

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80);
}

std::string_view first_word(std::string_view text) {
  auto end = std::find_if_not(text.begin(), text.end(), is_word);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

std::string_view trimmed(std::string_view text) {
  constexpr const char* kBlank = " \t\f";
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

bool has_word(std::string_view code, std::string_view word) {
  for (std::size_t at = code.find(word); at != code.npos; at = code.find(word, at + 1)) {
    bool begins = at == 0 || !is_word(code[at - 1]);
    std::size_t end = at + word.size();
    if (begins && (end == code.size() || !is_word(code[end]))) return true;
  }
  return false;
}

// `x = !ls`, `x = %time f()`
bool assigns_a_command(std::string_view code) {
  for (std::size_t at = code.find('='); at != code.npos; at = code.find('=', at + 1)) {
    std::string_view value = trimmed(code.substr(at + 1));
    if (value.starts_with('%') || (value.starts_with('!') && !value.starts_with("!="))) return true;
  }
  return false;
}

// What IPython takes from a text that was copied: an indentation of all of it, and prompts.
bool is_copied(const PythonLine& first) {
  std::string_view text = first.text;
  return text.find_first_not_of(" \t\f") > 0 || text.starts_with(">>>") || text.starts_with("In [");
}

// `pip install x`: two words in a row that Python has no use for.
bool is_automagic(std::string_view code) {
  std::string_view word = first_word(code), rest = code.substr(word.size());
  if (word.empty() || std::ranges::find(kKeywords, word) != std::end(kKeywords)) return false;
  if (!rest.starts_with(' ')) return false;
  std::string_view next = first_word(trimmed(rest));
  for (std::string_view between : {"and", "or", "in", "is", "not", "if", "for"})
    if (next == between) return false;
  return !next.empty();
}

bool is_ipython(const PythonLine& line) {
  std::string_view code = trimmed(line.code);
  if (code.empty()) return false;
  if (std::string_view("%!?,;/").find(code.front()) != std::string_view::npos) return true;
  // A __future__ import has to be the first statement of a file.
  return code.ends_with('?') || code.starts_with("from __future__") || assigns_a_command(code) ||
         is_automagic(code);
}

}  // namespace

std::vector<PythonLine> python_lines(std::string_view source) { return Scanner(source).all(); }

bool needs_ipython(const std::vector<PythonLine>& lines) {
  std::size_t function = std::string_view::npos;  // indentation of the one we are in
  auto says = [](const PythonLine& line) { return !trimmed(line.code).empty(); };
  auto first = std::ranges::find_if(lines, says);
  if (first != lines.end() && is_copied(*first)) return true;
  for (const PythonLine& line : lines) {
    std::string_view code = trimmed(line.code);
    if (code.empty()) continue;
    if (line.begins) {
      if (is_ipython(line)) return true;
      std::size_t indent = line.text.find_first_not_of(" \t\f");
      if (indent <= function) function = std::string_view::npos;
      bool defines = first_word(code) == "def" || code.starts_with("async def");
      if (defines && function == std::string_view::npos) {
        function = indent;
        continue;
      }
    }
    bool outside = function == std::string_view::npos;
    if (outside && (has_word(code, "await") || has_word(code, "async"))) return true;
  }
  return false;
}

}  // namespace tools
