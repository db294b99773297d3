#include "schemas/utf8.hpp"

#include <doctest/doctest.h>

#include <string>

TEST_CASE("only well-formed sequences have a length") {
  struct Row {
    const char* name;
    std::string bytes;
    std::size_t length;
  };
  for (const Row& row : {
           Row{"nothing", "", 0},
           Row{"ASCII", "a", 1},
           Row{"NUL is a character", std::string(1, '\0'), 1},
           Row{"two bytes", "é", 2},
           Row{"three bytes", "漢", 3},
           Row{"four bytes, more follows", "🙂abc", 4},
           Row{"a continuation alone", "\x80", 0},
           Row{"cut short", "\xe6\xbc", 0},
           Row{"overlong, two bytes", "\xc0\xaf", 0},
           Row{"overlong, three bytes", "\xe0\x80\xaf", 0},
           Row{"a surrogate", "\xed\xa0\x80", 0},
           Row{"the last character", "\xf4\x8f\xbf\xbf", 4},
           Row{"beyond the last", "\xf4\x90\x80\x80", 0},
           Row{"never a first byte", "\xff\xbf\xbf\xbf", 0},
       }) {
    CAPTURE(row.name);
    CHECK(schemas::utf8_sequence(row.bytes) == row.length);
  }
}
