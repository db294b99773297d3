#include "sandbox/output_log.hpp"

#include <algorithm>

#include "sandbox/bounded_text.hpp"

namespace sandbox {

namespace {

// What an Output weighs besides its bytes: a cell that alternates between two streams byte by byte
// must not turn 64 KiB of text into megabytes.
constexpr std::uint64_t kPieceCost = 64;
// A cell has one error; nested ones (a cell that runs cells) are few.
constexpr std::size_t kErrors = 8;

std::uint64_t cost(const Text& text) { return text.bytes.size() + kPieceCost; }

void count(Gap& gap, std::string_view bytes) {
  gap.bytes += bytes.size();
  gap.lines += std::count(bytes.begin(), bytes.end(), '\n');
}

}  // namespace

void OutputLog::text(StreamName stream, std::string_view bytes) {
  if (bytes.empty()) return;
  text_bytes_ += bytes.size();
  Text* last = outputs_.empty() ? nullptr : std::get_if<Text>(&outputs_.back().what);
  if (!last || last->stream != stream) {
    outputs_.push_back(Output{Text{stream, {}}});
    last = &std::get<Text>(outputs_.back().what);
    held_ += kPieceCost;
  }
  last->bytes.append(bytes);
  held_ += bytes.size();

  // Cutting is a little lazy, so that a flood of small pieces costs one pass a tail and not a
  // piece.
  std::uint64_t room = 2 * limits_.tail_bytes + (gap_ ? 0 : limits_.head_bytes);
  if (held_ > room) cut_middle();
}

void OutputLog::display(Display display, bool update) {
  std::uint64_t weight = held_bytes(display);
  if (update && replace(display, weight)) return;
  if (displays_ >= limits_.displays || display_bytes_ + weight > limits_.display_bytes) {
    ++gap().displays;
    return;
  }
  ++displays_;
  display_bytes_ += weight;
  outputs_.push_back(Output{std::move(display)});
}

bool OutputLog::replace(Display& display, std::uint64_t weight) {
  if (display.display_id.empty()) return false;
  auto found = std::find_if(outputs_.begin(), outputs_.end(), [&](const Output& output) {
    const auto* held = std::get_if<Display>(&output.what);
    return held && held->display_id == display.display_id;
  });
  if (found == outputs_.end()) return false;
  auto& held = std::get<Display>(found->what);
  std::uint64_t others = display_bytes_ - held_bytes(held);
  if (others + weight > limits_.display_bytes) {
    ++gap().displays;
    return true;
  }
  display_bytes_ = others + weight;
  display.is_result = held.is_result;
  held = std::move(display);
  return true;
}

void OutputLog::error(PythonError error) {
  if (errors_ == kErrors) {
    auto is_error = [](const Output& output) {
      return std::holds_alternative<PythonError>(output.what);
    };
    auto last = std::find_if(outputs_.rbegin(), outputs_.rend(), is_error);
    std::size_t index = outputs_.rend() - last - 1;
    outputs_.erase(outputs_.begin() + index);
    if (gap_ && *gap_ > index) --*gap_;
  } else {
    ++errors_;
  }
  outputs_.push_back(Output{std::move(error)});
}

void OutputLog::finish() {
  std::uint64_t room = limits_.tail_bytes + (gap_ ? 0 : limits_.head_bytes);
  if (held_ > room) cut_middle();
}

std::string OutputLog::whole() const {
  std::string out;
  for (const Output& output : outputs_)
    if (const auto* text = std::get_if<Text>(&output.what)) out += text->bytes;
  return out;
}

Gap& OutputLog::gap() {
  if (!gap_) {
    gap_ = end_of_head();
    outputs_.insert(outputs_.begin() + *gap_, Output{Gap{}});
    held_ = 0;
    for (std::size_t i = *gap_ + 1; i < outputs_.size(); ++i)
      if (const auto* text = std::get_if<Text>(&outputs_[i].what)) held_ += cost(*text);
  }
  return std::get<Gap>(outputs_[*gap_].what);
}

// Where the head ends, as an index; splits the Text in which it does.
std::size_t OutputLog::end_of_head() {
  std::uint64_t left = limits_.head_bytes;
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    auto* text = std::get_if<Text>(&outputs_[i].what);
    if (!text) continue;
    if (cost(*text) <= left) {
      left -= cost(*text);
      continue;
    }
    std::size_t room = left > kPieceCost ? left - kPieceCost : 0;
    std::size_t size = whole_characters(text->bytes, room);
    if (size == 0) return i;
    if (size == text->bytes.size()) return i + 1;
    Text rest{text->stream, text->bytes.substr(size)};
    text->bytes.resize(size);
    text->bytes.shrink_to_fit();
    outputs_.insert(outputs_.begin() + i + 1, Output{std::move(rest)});
    return i + 1;
  }
  return outputs_.size();
}

void OutputLog::cut_middle() {
  Gap& middle = gap();
  auto emptied = [&](Text& text) {
    if (held_ <= limits_.tail_bytes) return false;
    std::uint64_t excess = held_ - limits_.tail_bytes;
    if (text.bytes.size() <= excess) {
      count(middle, text.bytes);
      held_ -= cost(text);
      return true;
    }
    std::string_view bytes = text.bytes;
    std::size_t size = whole_characters(bytes, excess);
    if (size < excess) size = whole_characters(bytes, std::min(bytes.size(), size + 4));
    count(middle, bytes.substr(0, size));
    held_ -= size;
    text.bytes.erase(0, size);
    return false;
  };
  auto kept = outputs_.begin() + *gap_ + 1;
  for (auto next = kept; next != outputs_.end(); ++next) {
    auto* text = std::get_if<Text>(&next->what);
    if (text && emptied(*text)) continue;
    if (kept != next) *kept = std::move(*next);
    ++kept;
  }
  outputs_.erase(kept, outputs_.end());
}

}  // namespace sandbox
