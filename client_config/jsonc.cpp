#include "client_config/jsonc.hpp"

#include <algorithm>
#include <boost/json.hpp>

#include "client_config/edit.hpp"

namespace client_config {

namespace {

constexpr int kMaxDepth = 100;

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  JsonText all() {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;
    skip();
    if (at_ < text_.size()) {
      if (text_[at_] != '{') fail("expected an object: {");
      out_.root = object();
      out_.end = at_;
      skip();
      if (at_ < text_.size()) fail("expected nothing behind the object");
    } else {
      out_.end = at_;
    }
    return std::move(out_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw EditError(line_of(text_, at_), what);
  }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  // Blanks and comments.
  void skip() {
    for (;;) {
      at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
      std::string_view rest = text_.substr(at_);
      if (rest.starts_with("//")) {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (rest.starts_with("/*")) {
        std::size_t end = text_.find("*/", at_ + 2);
        if (end == text_.npos) fail("a comment without an end");
        at_ = end + 2;
      } else {
        return;
      }
    }
  }

  std::string string() {
    std::size_t begin = at_;
    if (!take('"')) fail("expected a string");
    while (!take('"')) {
      if (at_ >= text_.size() || text_[at_] == '\n') fail("a string without an end");
      at_ += text_[at_] == '\\' ? 2 : 1;
    }
    boost::system::error_code malformed;
    auto value = boost::json::parse(std::string_view(text_.substr(begin, at_ - begin)), malformed);
    if (malformed) fail("not a JSON string");
    return std::string(value.as_string());
  }

  std::size_t object() {
    std::size_t index = out_.objects.size();
    out_.objects.emplace_back();
    if (++depth_ > kMaxDepth) fail("nested too deep");
    JsonObject object;
    object.open = at_++;
    bool more = true;
    for (skip(); !take('}'); skip()) {
      if (!more) fail("expected , or }");
      JsonObject::Member member;
      member.begin = at_;
      member.key = string();
      for (const auto& other : object.members)
        if (other.key == member.key) fail("\"" + member.key + "\" is there twice");
      skip();
      if (!take(':')) fail("expected : behind the key");
      skip();
      member.value = at_;
      if (at_ < text_.size() && text_[at_] == '{')
        member.object = this->object();
      else
        value();
      member.end = at_;
      skip();
      more = at_ < text_.size() && text_[at_] == ',';
      if (more) member.comma = at_++;
      object.members.push_back(std::move(member));
    }
    object.close = at_ - 1;
    --depth_;
    out_.objects[index] = std::move(object);
    return index;
  }

  void array() {
    if (++depth_ > kMaxDepth) fail("nested too deep");
    ++at_;
    bool more = true;
    for (skip(); !take(']'); skip()) {
      if (!more) fail("expected , or ]");
      value();
      skip();
      more = take(',');
    }
    --depth_;
  }

  void value() {
    if (at_ >= text_.size()) fail("expected a value");
    char c = text_[at_];
    if (c == '{') return void(object());
    if (c == '[') return array();
    if (c == '"') return void(string());
    std::size_t end = std::min(text_.find_first_of(" \t\r\n,]}/", at_), text_.size());
    boost::system::error_code malformed;
    boost::json::parse(std::string_view(text_.substr(at_, end - at_)), malformed);
    if (malformed) fail("not a JSON value");
    at_ = end;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
  JsonText out_;
};

}  // namespace

JsonText scan_json(std::string_view text) { return Scanner(text).all(); }

}  // namespace client_config
