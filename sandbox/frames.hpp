#pragma once

#include <boost/json.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "sandbox/execution.hpp"
#include "sandbox/kernel_channel.hpp"

// The grammar of the kernel link (docs/kernel-link.md): bytes to frames, frames to messages. What
// comes in was written by code in the sandbox, so each claim in it is checked here and nowhere
// else.
namespace sandbox {

inline constexpr std::size_t kMaxFrameHeader = 1 << 20;
inline constexpr std::size_t kMaxFramePayload = 32 << 20;
inline constexpr std::size_t kMaxFrameDepth = 32;  // of the header's JSON

std::string encode_frame(const boost::json::object& header, std::string_view payload);

// Cuts a byte stream into frames. Holds at most what was given to it: a length that a frame claims
// is checked against the limits and then waited for, never allocated ahead of the data.
class FrameReader {
 public:
  void append(std::string_view bytes);
  // The next whole frame; nothing while more bytes are needed. After a Violation always that one.
  std::optional<std::variant<Frame, Violation>> take();

 private:
  std::string bytes_;
  std::size_t used_ = 0;  // of bytes_, already taken
  std::optional<Violation> broken_;
};

struct Ready {
  boost::json::object greeting;
};
struct Started {
  std::int64_t id = 0;
  int execution_count = 0;
};
struct Shown {
  std::int64_t id = 0;
  Display display;
  bool update = false;
};
struct Asked {
  std::int64_t id = 0;
  InputRequest request;
};
struct Failed {
  std::int64_t id = 0;
  PythonError error;
};
struct Done {
  std::int64_t id = 0;
  bool ok = false;
  int execution_count = 0;
};
using Message = std::variant<Ready, Started, Shown, Asked, Failed, Done>;

// What the frame says. Throws schemas::DecodeError when it is not one of the kernel's messages.
Message decode_message(Frame frame);

}  // namespace sandbox
