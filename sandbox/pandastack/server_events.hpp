#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace sandbox::pandastack {

// Reads a text/event-stream (HTML Living Standard, 9.2.6) that comes in any pieces.
class ServerEvents {
 public:
  struct Event {
    std::string name = "message";
    std::string data;
  };

  void feed(std::string_view bytes);
  std::optional<Event> next();
  // Once next() has none: the one that is not complete is longer than 256 KiB. Not to be fed more.
  bool is_too_long() const;

 private:
  std::string unread_;
  std::size_t at_ = 0;  // of unread_: what is before was read
  Event event_;         // as far as it has come
  bool has_data_ = false;
};

}  // namespace sandbox::pandastack
