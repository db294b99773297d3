// Any bytes as the kernel link, which code in a sandbox writes.

#include "sandbox/frames.hpp"

#include <algorithm>

#include "schemas/codec.hpp"
#include "tests/fuzz/check.hpp"

using namespace sandbox;

namespace {

// What was read: frames as they would be sent, then why it ended, if it did.
std::string read(std::string_view bytes, std::size_t piece) {
  std::string all;
  FrameReader reader;
  while (!bytes.empty()) {
    std::size_t size = std::min(piece, bytes.size());
    reader.append(bytes.substr(0, size));
    bytes.remove_prefix(size);
    while (auto next = reader.take()) {
      if (auto* broken = std::get_if<Violation>(&*next)) return all + broken->what;
      const Frame& frame = std::get<Frame>(*next);
      all += encode_frame(frame.header, frame.payload);
    }
  }
  return all;
}

void decode(Frame frame) {
  try {
    std::string payload = frame.payload;
    Message message = decode_message(std::move(frame));
    auto* shown = std::get_if<Shown>(&message);
    if (!shown) return;
    std::string parts;
    for (const Display::Binary& part : shown->display.binary) parts += part.bytes;
    check(parts == payload, "the parts of a payload are all of it");
  } catch (const schemas::DecodeError& wrong) {
    check(*wrong.what() != 0, "a refusal has a reason");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string_view bytes = as_text(data + 1, size - 1);
  check(read(bytes, bytes.size()) == read(bytes, 1 + data[0]),
        "frames read alike in whatever pieces they come");
  FrameReader reader;
  reader.append(bytes);
  while (auto next = reader.take()) {
    if (std::holds_alternative<Violation>(*next)) break;
    Frame frame = std::get<Frame>(std::move(*next));
    FrameReader again;
    again.append(encode_frame(frame.header, frame.payload));
    auto same = again.take();
    check(same && std::holds_alternative<Frame>(*same), "what was read can be sent on");
    decode(std::move(frame));
  }
  return 0;
}
