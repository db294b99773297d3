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

bool EventLog::may_go(const Event& event) const {
  bool read = event.number <= read_;
  if (kept_ == 0) return read;
  return disposable_ > kept_ && !event.answer && (read || !is_read_);
}

void EventLog::trim() {
  while (!events_.empty() && may_go(events_.front())) {
    const Event& oldest = events_.front();
    bytes_ -= oldest.text.size();
    if (!oldest.answer) disposable_ -= oldest.text.size();
    if (oldest.number > read_) unread_ -= oldest.text.size();
    events_.pop_front();
  }
}

}  // namespace transport::http
