#include "sandbox/output_log.hpp"

#include <doctest/doctest.h>

#include "sandbox/bounded_text.hpp"

namespace sandbox {
namespace {

OutputLimits small() {
  OutputLimits limits;
  limits.head_bytes = limits.tail_bytes = 1000;
  limits.displays = 3;
  limits.display_bytes = 4000;
  return limits;
}

Display display(std::string text, std::string id = {}) {
  Display out;
  out.data["text/plain"] = std::move(text);
  out.display_id = std::move(id);
  return out;
}

// "out:5 gap:12/2/0 display:a" and so on.
std::string shape(const std::deque<Output>& outputs) {
  std::string out;
  for (const Output& output : outputs) {
    if (!out.empty()) out += ' ';
    if (const auto* text = std::get_if<Text>(&output.what))
      out +=
          (text->stream == StreamName::out ? "out:" : "err:") + std::to_string(text->bytes.size());
    if (const auto* shown = std::get_if<Display>(&output.what))
      out += "display:" + std::string(shown->data.at("text/plain").as_string());
    if (std::get_if<PythonError>(&output.what)) out += "error";
    if (const auto* gap = std::get_if<Gap>(&output.what))
      out += "gap:" + std::to_string(gap->bytes) + "/" + std::to_string(gap->lines) + "/" +
             std::to_string(gap->displays);
  }
  return out;
}

TEST_CASE("pieces of one stream that follow each other are one text, in order with displays") {
  std::deque<Output> outputs;
  OutputLog log(outputs, small());
  log.text(StreamName::out, "a");
  log.text(StreamName::out, "b");
  log.text(StreamName::err, "c");
  log.text(StreamName::out, "");
  log.text(StreamName::err, "d");
  log.display(display("x"), false);
  log.text(StreamName::err, "e");
  log.error(PythonError{"E", "", {}});
  log.finish();
  CHECK(shape(outputs) == "out:2 err:2 display:x err:1 error");
}

TEST_CASE("the middle of too much text is cut out and counted exactly") {
  for (std::size_t piece : {1, 7, 64, 1000, 5000, 300'000}) {
    CAPTURE(piece);
    std::string all;
    for (int i = 0; all.size() < 300'000; ++i) all += "line " + std::to_string(i) + "\n";
    std::deque<Output> outputs;
    OutputLog log(outputs, small());
    for (std::size_t at = 0; at < all.size(); at += piece)
      log.text(StreamName::out, std::string_view(all).substr(at, piece));
    log.finish();

    REQUIRE(outputs.size() == 3);
    const auto& head = std::get<Text>(outputs[0].what).bytes;
    const auto& gap = std::get<Gap>(outputs[1].what);
    const auto& tail = std::get<Text>(outputs[2].what).bytes;
    CHECK(head.size() <= 1000);
    CHECK(head.size() > 900);
    CHECK(tail.size() <= 1000);
    CHECK(tail.size() > 900);
    CHECK(all.starts_with(head));
    CHECK(all.ends_with(tail));
    CHECK(head.size() + gap.bytes + tail.size() == all.size());
    std::string middle = all.substr(head.size(), gap.bytes);
    CHECK(gap.lines == static_cast<std::size_t>(std::count(middle.begin(), middle.end(), '\n')));
    CHECK(log.text_bytes() == all.size());
  }
}

TEST_CASE("text that fits is left whole") {
  std::deque<Output> outputs;
  OutputLog log(outputs, small());
  log.text(StreamName::out, std::string(1900, 'x'));
  log.finish();
  CHECK(shape(outputs) == "out:1900");
}

TEST_CASE("two streams that alternate byte by byte stay small") {
  std::deque<Output> outputs;
  OutputLog log(outputs, small());
  std::size_t most = 0;
  for (int i = 0; i < 100'000; ++i) {
    log.text(i % 2 ? StreamName::out : StreamName::err, "x");
    most = std::max(most, outputs.size());
  }
  log.finish();
  CHECK(most < 100);
  Gap gap;
  std::size_t held = 0;
  for (const Output& output : outputs) {
    if (const auto* text = std::get_if<Text>(&output.what)) held += text->bytes.size();
    if (const auto* found = std::get_if<Gap>(&output.what)) gap = *found;
  }
  CHECK(held + gap.bytes == 100'000);
}

TEST_CASE("characters are not cut in two") {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += "ü€😀";
  std::deque<Output> outputs;
  OutputLog log(outputs, small());
  log.text(StreamName::out, text);
  log.finish();
  REQUIRE(outputs.size() == 3);
  for (int i : {0, 2}) {
    const auto& piece = std::get<Text>(outputs[i].what).bytes;
    CHECK(readable_end(piece, piece.size()).find('?') == std::string::npos);
  }
}

TEST_CASE("displays past the cap are counted, in number and in size") {
  std::deque<Output> outputs;
  OutputLog log(outputs, small());
  for (const char* name : {"a", "b", "c", "d", "e"}) log.display(display(name), false);
  log.text(StreamName::out, "after");
  log.finish();
  CHECK(shape(outputs) == "display:a display:b display:c gap:0/0/2 out:5");

  outputs.clear();
  OutputLog sized(outputs, small());
  sized.display(display("a"), false);
  sized.display(display(std::string(4000, 'x')), false);
  sized.display(display("b"), false);
  sized.finish();
  CHECK(shape(outputs) == "display:a gap:0/0/1 display:b");
}

TEST_CASE("what a display weighs is the memory it takes, not the bytes it came in") {
  std::deque<Output> outputs;
  OutputLog log(outputs, small());
  Display heavy = display("a");
  heavy.metadata["list"] = boost::json::array(1000, nullptr);
  log.display(std::move(heavy), false);
  CHECK(shape(outputs) == "gap:0/0/1");
}

TEST_CASE("an update takes the place of the display it names") {
  std::deque<Output> outputs;
  OutputLog log(outputs, small());
  log.display(display("0 %", "bar"), false);
  log.text(StreamName::out, "text");
  for (int i = 1; i <= 100; ++i) log.display(display(std::to_string(i) + " %", "bar"), true);
  CHECK(shape(outputs) == "display:100 % out:4");
  log.display(display("other", "unknown"), true);
  CHECK(shape(outputs) == "display:100 % out:4 display:other");
}

TEST_CASE("errors without end leave the last ones") {
  std::deque<Output> outputs;
  OutputLog log(outputs, small());
  for (int i = 0; i < 1000; ++i) log.error(PythonError{std::to_string(i), "", {}});
  CHECK(outputs.size() == 8);
  CHECK(std::get<PythonError>(outputs.back().what).name == "999");
}

TEST_CASE("the end of a text as an error message shows it") {
  CHECK(readable_end("", 10) == "");
  CHECK(readable_end("abc\x1b[31mred\r\n\n", 100) == "abc[31mred");
  CHECK(readable_end("\xff"
                     "a\xc3(",
                     100) == "?a?(");
  CHECK(readable_end("xü", 1) == "");
  CHECK(readable_end("0123456789", 4) == "6789");
}

}  // namespace
}  // namespace sandbox
