#include "tools/content.hpp"

#include <algorithm>

#include "mcp/base64.hpp"
#include "tools/text.hpp"

namespace tools {

namespace {

// The server never decodes an image; it checks that the bytes begin as what they claim to be.
bool is_what_it_says(std::string_view mime, std::string_view bytes) {
  if (mime == "image/png") return bytes.starts_with("\x89PNG\r\n\x1a\n");
  if (mime == "image/jpeg") return bytes.starts_with("\xFF\xD8\xFF");
  if (mime == "image/webp") return bytes.starts_with("RIFF") && bytes.substr(8, 4) == "WEBP";
  return false;
}

std::string left_out_line(const sandbox::Gap& missing, const std::string& whole) {
  std::string counts;
  auto count = [&](std::uint64_t number, const char* unit) {
    if (number == 0) return;
    if (!counts.empty()) counts += ", ";
    counts += with_thousands(number) + " " + unit + (number == 1 ? "" : "s");
  };
  count(missing.bytes, "byte");
  count(missing.lines, "line");
  count(missing.displays, "display");
  std::string line = "\n[... " + counts + " left out";
  if (!whole.empty()) line += "; all of it: " + whole;
  return line + " ...]\n";
}

}  // namespace

std::string& Content::open_text() {
  bool fresh = parts_.empty() || !parts_.back().mime.empty() || parts_.back().is_gap;
  if (fresh) parts_.emplace_back();
  return parts_.back().text;
}

std::string& Content::open_line() {
  std::string& text = open_text();
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

void Content::text(std::string_view valid_utf8) {
  if (valid_utf8.empty()) return;
  std::string& text = line_ended_ ? open_text() : open_line();
  text += valid_utf8;
  line_ended_ = true;
}

void Content::line(std::string_view valid_utf8) {
  open_line() += valid_utf8;
  line_ended_ = false;
}

void Content::remark(std::string_view line) {
  std::string& text = open_line();
  text += '[';
  text += line;
  text += ']';
  line_ended_ = false;
}

void Content::image(std::string_view mime, std::string_view bytes, const std::string& description) {
  std::size_t size = (bytes.size() + 2) / 3 * 4;
  std::string problem;
  if (!is_what_it_says(mime, bytes)) problem = "not shown: not a sound " + valid_utf8(mime);
  if (size > limits_.image_base64) problem = "not shown: too large";
  if (images_ == limits_.images || image_bytes_ + size > limits_.images_base64)
    problem = "not shown: the images before it fill this result; show it in a call of its own";
  if (!problem.empty()) return remark(description + " (" + problem + ")");
  remark(description);
  Part part;
  part.base64 = mcp::base64_encode(bytes);
  part.mime = mime;
  parts_.push_back(std::move(part));
  ++images_;
  image_bytes_ += size;
}

void Content::gap(const sandbox::Gap& gap) {
  missing_.bytes += gap.bytes;
  missing_.lines += gap.lines;
  missing_.displays += gap.displays;
  if (has_gap_) return;
  has_gap_ = true;
  Part part;
  part.is_gap = true;
  parts_.push_back(std::move(part));
}

std::size_t Content::characters_in(Parts::iterator from, Parts::iterator to) {
  std::size_t total = 0;
  for (; from != to; ++from) total += characters(from->text);
  return total;
}

// Cuts the text in two after that many characters; where the second half begins.
Content::Parts::iterator Content::split(std::size_t at) {
  auto part = parts_.begin();
  for (; part != parts_.end(); ++part) {
    std::size_t count = characters(part->text);
    if (count > at) break;
    at -= count;
  }
  if (part == parts_.end() || at == 0) return part;
  Part first;
  first.text = first_characters(part->text, at);
  part->text.erase(0, first.text.size());
  parts_.insert(part, std::move(first));
  return part;
}

void Content::leave_out(Part& part, std::string_view what) {
  missing_.bytes += what.size();
  missing_.lines += static_cast<std::uint64_t>(std::ranges::count(what, '\n'));
  bool at_start = what.data() == part.text.data();
  part.text.erase(at_start ? 0 : part.text.size() - what.size(), what.size());
}

void Content::keep_first(Parts::iterator from, Parts::iterator to, std::size_t count) {
  for (; from != to; ++from) {
    std::string_view kept = first_characters(from->text, count);
    count -= characters(kept);
    leave_out(*from, std::string_view(from->text).substr(kept.size()));
  }
}

void Content::keep_last(Parts::iterator from, Parts::iterator to, std::size_t count) {
  while (to != from) {
    --to;
    std::string_view kept = last_characters(to->text, count);
    count -= characters(kept);
    std::string_view text(to->text);
    leave_out(*to, text.substr(0, text.size() - kept.size()));
  }
}

std::vector<mcp::Content> Content::finish(const std::string& whole) && {
  auto gap = std::ranges::find(parts_, true, &Part::is_gap);
  std::size_t before = characters_in(parts_.begin(), gap), after = characters_in(gap, parts_.end());
  // The end says how it went (a traceback, a summary), so it gets nearly half.
  std::size_t head = limits_.characters * 11 / 20, tail = limits_.characters - head;
  if (gap == parts_.end() && before > limits_.characters) {
    Part cut;
    cut.is_gap = true;
    gap = parts_.insert(split(head), std::move(cut));
    after = before - head;
    before = head;
  }
  if (gap != parts_.end()) {
    if (before < head) tail = limits_.characters - before;
    if (after < tail) head = limits_.characters - after;
    keep_first(parts_.begin(), gap, head);
    keep_last(std::next(gap), parts_.end(), tail);
    gap->text = left_out_line(missing_, whole);
  }
  std::vector<mcp::Content> blocks;
  for (Part& part : parts_) {
    if (!part.mime.empty()) {
      blocks.push_back(mcp::image_content(std::move(part.base64), std::move(part.mime)));
    } else if (!blocks.empty() && blocks.back().type == "text") {
      *blocks.back().text += part.text;
    } else if (!part.text.empty()) {
      blocks.push_back(mcp::text_content(std::move(part.text)));
    }
  }
  return blocks;
}

}  // namespace tools
