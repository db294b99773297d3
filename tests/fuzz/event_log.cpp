// Any order of writing to a stream's log and reading from it. A plain list of all messages says
// what a reader has to see.

#include "transport/http/event_log.hpp"

#include <algorithm>
#include <vector>

#include "tests/fuzz/check.hpp"

using transport::http::Event;
using transport::http::EventLog;

namespace {

constexpr std::size_t kKept[] = {0, 1, 40, 200};

class Story {
 public:
  explicit Story(std::size_t kept) : kept_(kept), log_(kept) {}

  void step(std::uint8_t what) {
    std::size_t argument = what >> 3;
    switch (what & 7) {
      case 0:
      case 1:
        append(argument, false);
        break;
      case 2:
        append(argument, true);
        break;
      case 3:
        log_.begin_reading(argument);
        read_ = std::min<std::size_t>(argument, all_.size());
        break;
      case 4:
        log_.begin_reading(~std::uint64_t{0} - argument);
        read_ = all_.size();
        break;
      case 5:
        log_.stop_reading();
        break;
      case 6:
        read();
        break;
      case 7:
        if (argument == 31) clear();
        break;
    }
    check(log_.last() == all_.size(), "numbers have no gaps");
    check(log_.unread() <= log_.bytes(), "what is unread is a part of it");
    if (!log_.is_read()) check(disposable() <= kept_ || kept_ == 0, "what it keeps has its limit");
  }

 private:
  void append(std::size_t size, bool answer) {
    all_.push_back({all_.size() + 1, std::string(size, answer ? 'a' : 'm'), answer});
    log_.append(all_.back().text, answer);
  }

  void read() {
    const Event* event = log_.next();
    if (!event) {
      check(log_.unread() == 0, "nothing to read, and nothing unread");
      return;
    }
    check(event->number > read_, "no message is read twice");
    const Event& written = all_[event->number - 1];
    check(event->text == written.text && event->answer == written.answer, "as it was written");
    // Answers stay as long as the log, where it is resumable: a reader misses none.
    for (std::size_t number = read_ + 1; kept_ > 0 && number < event->number; ++number)
      check(!all_[number - 1].answer || number <= cleared_, "no answer is lost");
    read_ = event->number;
    log_.advance();
  }

  void clear() {
    log_.clear();
    cleared_ = all_.size();
    check(log_.bytes() == 0 && !log_.next(), "cleared");
  }

  // Bytes that are not answers, from what is left: all of it is, less the answers.
  std::size_t disposable() const {
    std::size_t answers = 0;
    for (const Event& event : all_)
      if (event.answer && event.number > cleared_) answers += event.text.size();
    return log_.bytes() - std::min(answers, log_.bytes());
  }

  std::size_t kept_;
  EventLog log_;
  std::vector<Event> all_;
  std::uint64_t read_ = 0, cleared_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Story story(kKept[data[0] % 4]);
  for (std::size_t at = 1; at < size; ++at) story.step(data[at]);
  return 0;
}
