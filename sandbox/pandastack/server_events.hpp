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

  // Takes more of the stream. False: an event is longer than 256 KiB, and nothing more is read.
  bool feed(std::string_view bytes);
  std::optional<Event> next();

 private:
  std::string unread_;
  std::size_t at_ = 0;  // of unread_: what is before was read
  Event event_;         // as far as it has come
  bool has_data_ = false;
};

}  // namespace sandbox::pandastack
