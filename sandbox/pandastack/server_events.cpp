#include "sandbox/pandastack/server_events.hpp"

#include <utility>

namespace sandbox::pandastack {

namespace {

constexpr std::size_t kMaxEvent = 256 << 10;

// The line at the beginning of `text`, which is taken off with its end; nullopt if that has not
// come. (A lone CR, which the standard takes for an end, too, is never sent by Go.)
std::optional<std::string_view> take_line(std::string_view& text) {
  std::size_t end = text.find('\n');
  if (end == text.npos) return std::nullopt;
  std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Whether the line is this field; then `value` is its value.
bool is_field(std::string_view line, std::string_view name, std::string_view& value) {
  if (!line.starts_with(name)) return false;
  line.remove_prefix(name.size());
  if (!line.empty() && !line.starts_with(':')) return false;
  line.remove_prefix(line.empty() ? 0 : 1);
  if (line.starts_with(' ')) line.remove_prefix(1);
  value = line;
  return true;
}

}  // namespace

void ServerEvents::feed(std::string_view bytes) {
  unread_.erase(0, at_);
  at_ = 0;
  unread_ += bytes;
}

bool ServerEvents::is_too_long() const {
  return unread_.size() - at_ + event_.data.size() > kMaxEvent;
}

std::optional<ServerEvents::Event> ServerEvents::next() {
  std::string_view text = std::string_view(unread_).substr(at_);
  while (auto line = take_line(text)) {
    at_ = unread_.size() - text.size();
    std::string_view value;
    if (line->empty()) {
      Event event = std::exchange(event_, Event());
      if (std::exchange(has_data_, false)) return event;
    } else if (is_field(*line, "event", value)) {
      event_.name = value;
    } else if (is_field(*line, "data", value)) {
      if (std::exchange(has_data_, true)) event_.data += '\n';
      event_.data += value;
    }
  }
  return std::nullopt;
}

}  // namespace sandbox::pandastack
