#include "transport/message_text.hpp"

#include <doctest/doctest.h>

TEST_CASE("surrogate escapes: pairs are kept, lone halves become U+FFFD") {
  struct Row {
    const char* in;
    const char* text;  // UTF-8
  };
  for (const Row& row : {
           Row{R"("\ud83d\ude42")", "\U0001F642"},
           Row{R"("\uD83D\uDE42 \ud83d")", "\U0001F642 \uFFFD"},
           Row{R"("\ud800")", "\uFFFD"},
           Row{R"("\udc00\ud800")", "\uFFFD\uFFFD"},
           Row{R"("\ud800\ud83d\ude42")", "\uFFFD\U0001F642"},
           Row{R"("\ud800\n")", "\uFFFD\n"},
           Row{R"("\ud800x\ud800\\ud800")", "\uFFFDx\uFFFD\\ud800"},
       }) {
    CAPTURE(row.in);
    auto value = transport::parse_message(row.in);
    REQUIRE(value);
    CHECK(value->as_string() == row.text);
  }
}

TEST_CASE("a repair does not make JSON of what is none") {
  for (const char* text : {"\"\\ud800", "\"\\ud80\"", "\"\\ud8zz\"", "\\ud800", "\"\\u\"", "\""}) {
    CAPTURE(text);
    CHECK_FALSE(transport::parse_message(text));
  }
}

TEST_CASE("huge numbers are read as something, or refused, but never crash") {
  for (const char* text : {"1e400", "-1e400", "1e-400", "123456789012345678901234567890",
                           "0.1e99999999999999999999", "18446744073709551615"}) {
    CAPTURE(text);
    transport::parse_message(text);
  }
}

TEST_CASE("lines with nothing to answer") {
  for (const char* text : {"", "\r", " \t ", "\xEF\xBB\xBF"}) CHECK(transport::is_blank(text));
  CHECK_FALSE(transport::is_blank("{"));
}

TEST_CASE("a message has so many values and no more; its strings may hold what they like") {
  auto list = [](std::size_t size) {
    std::string text = "[0";
    for (std::size_t i = 1; i < size; ++i) text += ",0";
    return text + "]";
  };
  CHECK(transport::parse_message(list(99'000)));
  CHECK_FALSE(transport::parse_message(list(100'000)));
  CHECK_FALSE(transport::parse_message("[\"\\\\\"," + list(100'000) + "]"));
  std::string table;
  for (int i = 0; i < 200'000; ++i) table += "1,[{:\\\",";
  CHECK(transport::parse_message("[\"" + table + "\"]"));
}
