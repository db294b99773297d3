#include "transport/http/event_log.hpp"

#include <algorithm>

namespace transport::http {

void EventLog::append(std::string text, bool answer) {
  bytes_ += text.size();
  unread_ += text.size();
  if (!answer) disposable_ += text.size();
  Event& event = events_.emplace_back();
  event.number = ++last_;
  event.text = std::move(text);
  event.answer = answer;
  trim();
}

void EventLog::begin_reading(std::uint64_t after) {
  is_read_ = true;
  read_ = std::min(after, last_);
  unread_ = 0;
  for (const Event& event : events_)
    if (event.number > read_) unread_ += event.text.size();
}

void EventLog::stop_reading() {
  is_read_ = false;
  trim();
}

const Event* EventLog::next() const {
  auto unread = [this](const Event& event) { return event.number > read_; };
  // From the back: read events may be many, those to come are few.
  auto found = std::find_if_not(events_.rbegin(), events_.rend(), unread);
  return found == events_.rbegin() ? nullptr : &*std::prev(found);
}

void EventLog::advance() {
  const Event* event = next();
  read_ = event->number;
  unread_ -= event->text.size();
  trim();
}

void EventLog::clear() {
  events_.clear();
  bytes_ = disposable_ = unread_ = 0;
}

// What its reader, or the next one, is still to have.
bool EventLog::is_awaited(const Event& event) const {
  return event.number > read_ && (is_read_ || kept_ == 0);
}

void EventLog::trim() {
  auto too_much = [this] { return kept_ == 0 || disposable_ > kept_; };
  for (auto oldest = events_.begin(); oldest != events_.end() && too_much();) {
    if (is_awaited(*oldest)) break;
    if (oldest->answer && kept_ > 0) {
      ++oldest;  // it stays, and what may go can be behind it
      continue;
    }
    bytes_ -= oldest->text.size();
    if (!oldest->answer) disposable_ -= oldest->text.size();
    if (oldest->number > read_) unread_ -= oldest->text.size();
    oldest = events_.erase(oldest);
  }
}

}  // namespace transport::http
