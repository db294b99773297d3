#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace transport::http {

struct Event {
  std::uint64_t number = 0;  // from 1, without gaps
  std::string text;          // one message as JSON
  bool answer = false;       // the response to a request of the client's
};

// The messages of one stream: those that its reader has not taken yet, and, of a resumable stream,
// a bounded number that it may ask for again.
class EventLog {
 public:
  // `kept`: bytes to keep of a resumable stream, answers not counted: they stay as long as the log.
  // 0: not resumable, what has been read is forgotten.
  explicit EventLog(std::size_t kept) : kept_(kept) {}

  // Without a reader the oldest events make room, so that a client that is gone costs no more than
  // `kept` and the answers.
  void append(std::string text, bool answer);

  // A reader comes, and has already got everything up to this number; or goes.
  void begin_reading(std::uint64_t after);
  void stop_reading();
  bool is_read() const { return is_read_; }

  // The next event to read; null if there is none. Valid until something changes.
  const Event* next() const;
  void advance();

  std::uint64_t last() const { return last_; }
  std::size_t bytes() const { return bytes_; }
  std::size_t unread() const { return unread_; }
  void clear();

 private:
  bool is_awaited(const Event& event) const;
  void trim();

  std::size_t kept_;
  std::deque<Event> events_;
  std::uint64_t last_ = 0;  // number of the newest event ever
  std::uint64_t read_ = 0;  // number of the newest event that has been read
  std::size_t bytes_ = 0;
  std::size_t disposable_ = 0;  // bytes of events that are no answers
  std::size_t unread_ = 0;
  bool is_read_ = false;
};

}  // namespace transport::http
