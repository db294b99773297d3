#include "sandbox/frames.hpp"

#include <boost/endian/conversion.hpp>

#include "sandbox/bounded_text.hpp"
#include "schemas/codec.hpp"
#include "schemas/parse.hpp"

namespace sandbox {

namespace json = boost::json;

namespace {

constexpr std::size_t kLengths = 8;
constexpr std::size_t kMaxPrompt = 4096;

// The messages as they are on the wire; `id` is the cell's number.
struct StartedFrame {
  std::int64_t id;
  int execution_count;
};
BOOST_DESCRIBE_STRUCT(StartedFrame, (), (id, execution_count))

struct BinaryPart {
  std::string mime;
  std::uint64_t length;
};
BOOST_DESCRIBE_STRUCT(BinaryPart, (), (mime, length))

struct DisplayFrame {
  std::int64_t id;
  json::object data;
  std::optional<std::vector<BinaryPart>> binary;
  std::optional<json::object> metadata;
  std::optional<bool> result;
  std::optional<std::string> display_id;
  std::optional<bool> update;
};
BOOST_DESCRIBE_STRUCT(DisplayFrame, (), (id, data, binary, metadata, result, display_id, update))

struct InputFrame {
  std::int64_t id;
  std::string prompt;
  bool password;
};
BOOST_DESCRIBE_STRUCT(InputFrame, (), (id, prompt, password))

struct ErrorFrame {
  std::int64_t id;
  std::string name;
  std::string value;
  std::vector<std::string> traceback;
};
BOOST_DESCRIBE_STRUCT(ErrorFrame, (), (id, name, value, traceback))

struct DoneFrame {
  std::int64_t id;
  std::string status;
  int execution_count;
};
BOOST_DESCRIBE_STRUCT(DoneFrame, (), (id, status, execution_count))

void expect(bool ok, const char* what) {
  if (!ok) throw schemas::DecodeError(what);
}

std::vector<Display::Binary> cut(const std::vector<BinaryPart>& parts, std::string payload) {
  std::vector<Display::Binary> out;
  std::size_t from = 0;
  for (const BinaryPart& part : parts) {
    expect(part.length <= payload.size() - from, "binary: more than the payload");
    out.push_back({part.mime, payload.substr(from, part.length)});
    from += part.length;
  }
  expect(from == payload.size(), "binary: less than the payload");
  return out;
}

Message shown(Frame frame) {
  auto in = schemas::decode<DisplayFrame>(frame.header);
  for (const auto& entry : in.data)
    expect(entry.value().is_string(), "data: expected text for each MIME type");
  Shown out{.id = in.id};
  out.display.data = std::move(in.data);
  out.display.binary = cut(in.binary.value_or(std::vector<BinaryPart>()), std::move(frame.payload));
  out.display.metadata = std::move(in.metadata).value_or(json::object());
  out.display.is_result = in.result.value_or(false);
  out.display.display_id = std::move(in.display_id).value_or("");
  out.update = in.update.value_or(false);
  return out;
}

Message started(Frame frame) {
  auto in = schemas::decode<StartedFrame>(frame.header);
  return Started{in.id, in.execution_count};
}

Message asked(Frame frame) {
  auto in = schemas::decode<InputFrame>(frame.header);
  if (in.prompt.size() > kMaxPrompt) in.prompt.resize(whole_characters(in.prompt, kMaxPrompt));
  return Asked{in.id, {std::move(in.prompt), in.password}};
}

Message failed(Frame frame) {
  auto in = schemas::decode<ErrorFrame>(frame.header);
  return Failed{in.id, {std::move(in.name), std::move(in.value), std::move(in.traceback)}};
}

Message done(Frame frame) {
  auto in = schemas::decode<DoneFrame>(frame.header);
  expect(in.status == "ok" || in.status == "error", "status: expected \"ok\" or \"error\"");
  return Done{in.id, in.status == "ok", in.execution_count};
}

Message ready(Frame frame) {
  frame.header.erase("ev");
  return Ready{std::move(frame.header)};
}

struct Kind {
  std::string_view name;
  Message (*decode)(Frame);
  bool payload = false;
};
constexpr Kind kKinds[] = {
    {"ready", ready},         {"started", started}, {"display", shown, true},
    {"input_request", asked}, {"error", failed},    {"done", done},
};

}  // namespace

std::string encode_frame(const json::object& header, std::string_view payload) {
  std::string text = json::serialize(header);
  std::string out(kLengths, '\0');
  auto* lengths = reinterpret_cast<unsigned char*>(out.data());
  boost::endian::store_little_u32(lengths, static_cast<std::uint32_t>(text.size()));
  boost::endian::store_little_u32(lengths + 4, static_cast<std::uint32_t>(payload.size()));
  out.reserve(out.size() + text.size() + payload.size());
  out.append(text).append(payload);
  return out;
}

void FrameReader::append(std::string_view bytes) {
  if (broken_) return;
  if (used_ == bytes_.size()) {
    bytes_.clear();
    used_ = 0;
    if (bytes_.capacity() > kMaxFrameHeader) bytes_.shrink_to_fit();
  } else if (used_ > bytes_.size() / 2) {
    bytes_.erase(0, used_);
    used_ = 0;
  }
  bytes_.append(bytes);
}

std::optional<std::variant<Frame, Violation>> FrameReader::take() {
  if (broken_) return *broken_;
  std::string_view rest = std::string_view(bytes_).substr(used_);
  if (rest.size() < kLengths) return std::nullopt;
  const auto* lengths = reinterpret_cast<const unsigned char*>(rest.data());
  std::size_t header_size = boost::endian::load_little_u32(lengths);
  std::size_t payload_size = boost::endian::load_little_u32(lengths + 4);
  auto violation = [this](std::string what) { return *(broken_ = Violation{std::move(what)}); };
  if (header_size > kMaxFrameHeader) return violation("a frame header of more than 1 MiB");
  if (payload_size > kMaxFramePayload) return violation("a frame payload of more than 32 MiB");
  if (rest.size() < kLengths + header_size + payload_size) return std::nullopt;

  boost::system::error_code malformed;
  auto header = schemas::parse(rest.substr(kLengths, header_size), malformed, kMaxFrameDepth);
  if (malformed) return violation("a frame header that is not JSON: " + malformed.message());
  if (!header.is_object()) return violation("a frame header that is not an object");
  Frame frame{std::move(header.get_object()),
              std::string(rest.substr(kLengths + header_size, payload_size))};
  used_ += kLengths + header_size + payload_size;
  return frame;
}

Message decode_message(Frame frame) {
  const json::value* event = frame.header.if_contains("ev");
  expect(event && event->is_string(), "ev: expected string");
  for (const Kind& kind : kKinds) {
    if (kind.name != event->get_string()) continue;
    expect(kind.payload || frame.payload.empty(), "payload: expected none");
    return kind.decode(std::move(frame));
  }
  throw schemas::DecodeError("ev: expected a message of the kernel");
}

}  // namespace sandbox
