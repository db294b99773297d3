#include "sandbox/frames.hpp"

#include <doctest/doctest.h>

#include <random>

#include "schemas/codec.hpp"
#include "tests/sandbox/fake_kernel.hpp"

namespace sandbox {
namespace {

std::string lengths(std::uint32_t header, std::uint32_t payload) {
  std::string out;
  for (std::uint32_t value : {header, payload})
    for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> (8 * i));
  return out;
}

std::string raw(std::string header, std::string payload = {}) {
  return lengths(header.size(), payload.size()) + header + payload;
}

// What a reader makes of these bytes: one word a frame.
std::string reading(std::string_view bytes) {
  FrameReader reader;
  reader.append(bytes);
  std::string out;
  while (auto taken = reader.take()) {
    if (std::holds_alternative<Violation>(*taken)) return out + "violation";
    out += "frame ";
  }
  return out;
}

TEST_CASE("bytes become frames, or a violation, and never more memory than was sent") {
  struct Row {
    const char* name;
    std::string bytes;
    const char* expected;
  };
  std::string deep(100'000, '[');
  std::string good = raw(R"({"ev":"ready"})", "abc");
  for (const Row& row : {
           Row{"nothing", "", ""},
           Row{"half of the lengths", good.substr(0, 5), ""},
           Row{"a frame", good, "frame "},
           Row{"two and a half", good + good + good.substr(0, 12), "frame frame "},
           Row{"a header of 4 GiB", lengths(0xFFFFFFFF, 0), "violation"},
           Row{"a payload of 4 GiB", lengths(2, 0xFFFFFFFF) + "{}", "violation"},
           Row{"one byte too much of header", lengths((1 << 20) + 1, 0), "violation"},
           Row{"the most, not there yet", lengths(1 << 20, 32 << 20), ""},
           Row{"an empty header", raw(""), "violation"},
           Row{"no JSON", raw("{"), "violation"},
           Row{"no object", raw("[1]"), "violation"},
           Row{"more behind the object", raw("{} {}"), "violation"},
           Row{"deep nesting", raw("{\"a\":" + deep), "violation"},
           Row{"bytes that are no UTF-8", raw("{\"a\":\"\xff\"}"), "violation"},
           Row{"a lone surrogate", raw(R"({"a":"\ud800"})"), "violation"},
           Row{"the same key twice", raw(R"({"ev":"ready","ev":"done"})"), "frame "},
           Row{"a good one before a bad one", good + raw("x"), "frame violation"},
       }) {
    CAPTURE(row.name);
    CHECK(reading(row.bytes) == row.expected);
  }
}

TEST_CASE("a frame torn at every byte is the same frame") {
  std::string bytes = encode_frame(object(R"({"ev":"done","id":7,"x":"ü"})"), std::string(9, '\0'));
  FrameReader reader;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    CHECK_FALSE(reader.take());
    reader.append(bytes.substr(i, 1));
  }
  auto taken = reader.take();
  REQUIRE(taken);
  auto& frame = std::get<Frame>(*taken);
  CHECK(frame.header == object(R"({"ev":"done","id":7,"x":"ü"})"));
  CHECK(frame.payload == std::string(9, '\0'));
  CHECK_FALSE(reader.take());
}

TEST_CASE("messages are checked member by member") {
  struct Row {
    const char* header;
    const char* payload;
    const char* problem;  // empty: fine
  };
  for (
      const Row& row : {
          Row{R"({"ev":"ready"})", "", ""},
          Row{R"({"ev":"started","id":1,"execution_count":2})", "", ""},
          Row{R"({"ev":"display","id":1,"data":{"text/plain":"2"}})", "", ""},
          Row{R"({"ev":"display","id":1,"data":{},"binary":[{"mime":"image/png","length":3}]})",
              "PNG", ""},
          Row{R"({"ev":"display","id":1,"data":{},"binary":[{"mime":"a","length":1},{"mime":"b","length":2}]})",
              "PNG", ""},
          Row{R"({"ev":"input_request","id":1,"prompt":"?","password":true})", "", ""},
          Row{R"({"ev":"error","id":1,"name":"E","value":"v","traceback":["a"]})", "", ""},
          Row{R"({"ev":"done","id":1,"status":"ok","execution_count":1})", "", ""},

          Row{R"({})", "", "ev"},
          Row{R"({"ev":1})", "", "ev"},
          Row{R"({"ev":"dance"})", "", "ev"},
          Row{R"({"ev":"done"})", "", "id"},
          Row{R"({"ev":"started","id":"1","execution_count":2})", "", "id"},
          Row{R"({"ev":"started","id":1,"execution_count":1e300})", "", "execution_count"},
          Row{R"({"ev":"started","id":99999999999999999999,"execution_count":1})", "", "id"},
          Row{R"({"ev":"started","id":1,"execution_count":1})", "x", "payload"},
          Row{R"({"ev":"done","id":1,"status":"fine","execution_count":1})", "", "status"},
          Row{R"({"ev":"error","id":1,"name":"E","value":"v","traceback":[1]})", "", "traceback"},
          Row{R"({"ev":"display","id":1,"data":{"text/plain":2}})", "", "data"},
          Row{R"({"ev":"display","id":1,"data":[]})", "", "data"},
          Row{R"({"ev":"display","id":1,"data":{}})", "x", "binary"},
          Row{R"({"ev":"display","id":1,"data":{},"binary":[{"mime":"a","length":2}]})", "PNG",
              "binary"},
          Row{R"({"ev":"display","id":1,"data":{},"binary":[{"mime":"a","length":4}]})", "PNG",
              "binary"},
          Row{R"({"ev":"display","id":1,"data":{},"binary":[{"mime":"a","length":-1}]})", "PNG",
              "binary"},
          Row{R"({"ev":"display","id":1,"data":{},"binary":[{"mime":"a","length":18446744073709551615},{"mime":"a","length":4}]})",
              "PNG", "binary"},
      }) {
    CAPTURE(row.header);
    std::string problem;
    try {
      decode_message(frame(row.header, row.payload));
    } catch (const schemas::DecodeError& wrong) {
      problem = wrong.what();
    }
    CHECK(problem.substr(0, std::string_view(row.problem).size()) == row.problem);
    CHECK(problem.empty() == std::string_view(row.problem).empty());
  }
}

TEST_CASE("any bytes at all end in frames, a violation or a wait") {
  std::mt19937 random(20261129);
  std::string seed = encode_frame(
      object(
          R"({"ev":"display","id":3,"data":{"text/plain":"x"},"binary":[{"mime":"image/png","length":8}],"metadata":{"image":{"width":5}},"result":true,"display_id":"d","update":false})"),
      "\x89PNG\r\n\x1a\n");
  seed += encode_frame(object(R"({"ev":"done","id":3,"status":"ok","execution_count":1})"), "");
  int violations = 0, decoded = 0, wrong = 0;
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = seed;
    if (round % 4 == 0)
      for (char& byte : bytes) byte = static_cast<char>(random());
    for (unsigned i = random() % 4; i > 0; --i) {
      std::size_t at = random() % bytes.size();
      switch (random() % 3) {
        case 0:
          bytes[at] = static_cast<char>(random());
          break;
        case 1:
          bytes.erase(at, random() % 9);
          break;
        default:
          bytes.insert(at, 1, static_cast<char>("{}[]\",:0"[random() % 8]));
      }
    }
    FrameReader reader;
    std::string_view rest = bytes;
    while (!rest.empty()) {
      std::size_t size = std::min<std::size_t>(rest.size(), 1 + random() % 64);
      reader.append(rest.substr(0, size));
      rest.remove_prefix(size);
    }
    while (auto taken = reader.take()) {
      if (std::holds_alternative<Violation>(*taken)) {
        ++violations;
        break;
      }
      try {
        decode_message(std::move(std::get<Frame>(*taken)));
        ++decoded;
      } catch (const schemas::DecodeError&) {
        ++wrong;
      }
    }
  }
  // The mutations reach every kind of end.
  CHECK(violations > 1000);
  CHECK(decoded > 1000);
  CHECK(wrong > 100);
}

}  // namespace
}  // namespace sandbox
