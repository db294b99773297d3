#include "tools/text.hpp"

#include <doctest/doctest.h>

using namespace std::string_literals;

TEST_CASE("any bytes become valid UTF-8, one replacement a bad byte") {
  struct Row {
    const char* name;
    std::string in, out;
  };
  for (const Row& row : {
           Row{"plain", "abc", "abc"},
           Row{"two, three and four bytes", "é漢🙂", "é漢🙂"},
           Row{"not UTF-8 at all", "\xff\xfe ok\n", "�� ok\n"},
           Row{"a sequence cut short", "a\xe6\xbc", "a��"},
           Row{"an overlong slash", "\xc0\xaf", "��"},
           Row{"a surrogate in disguise", "\xed\xa0\x80", "���"},
           Row{"beyond Unicode", "\xf4\x90\x80\x80", "����"},
           Row{"NUL and bell", "a\0b\a"s, "a�b�"},
           Row{"tab, newline and U+2028 stay", "\t\n\xe2\x80\xa8", "\t\n\xe2\x80\xa8"},
       }) {
    CAPTURE(row.name);
    CHECK(tools::valid_utf8(row.in) == row.out);
  }
}

TEST_CASE("plain text is what a terminal would have shown in the end") {
  struct Row {
    const char* name;
    std::string in, out;
  };
  for (const Row& row : {
           Row{"colours", "\x1b[31mred\x1b[0m", "red"},
           Row{"cursor moves", "a\x1b[2K\x1b[1Gb", "ab"},
           Row{"a window title", "\x1b]0;title\ahello", "hello"},
           Row{"a title ended the other way", "\x1b]0;title\x1b\\hello", "hello"},
           Row{"a title that never ends hides its line only", "\x1b]0;evil\nhello", "\nhello"},
           Row{"a two-byte sequence", "\x1b=x\x1b(By", "xy"},
           Row{"an escape at the very end", "x\x1b", "x"},
           Row{"progress", " 10%\r 50%\r100%\n", "100%\n"},
           Row{"progress that is still going", " 10%\r 50%\r", " 50%"},
           Row{"Windows line ends", "a\r\nb\r\n", "a\nb\n"},
           Row{"empty", "", ""},
       }) {
    CAPTURE(row.name);
    CHECK(tools::plain_text(row.in) == row.out);
  }
}

TEST_CASE("cutting counts characters, not bytes") {
  CHECK(tools::characters("é漢🙂a") == 4);
  CHECK(tools::first_characters("é漢🙂a", 2) == "é漢");
  CHECK(tools::last_characters("é漢🙂a", 2) == "🙂a");
  CHECK(tools::first_characters("ab", 9) == "ab");
  CHECK(tools::last_characters("ab", 0) == "");
}

TEST_CASE("numbers and sizes for the reader") {
  CHECK(tools::with_thousands(0) == "0");
  CHECK(tools::with_thousands(999) == "999");
  CHECK(tools::with_thousands(22'000'001) == "22,000,001");
  CHECK(tools::size_text(512) == "512 B");
  CHECK(tools::size_text(1536) == "1.5 KiB");
  CHECK(tools::size_text(2ull << 30) == "2 GiB");
}

TEST_CASE("text is told from binary, and a cut at its end is mended") {
  CHECK(tools::is_text("a,b\r\n1,2\r\n"));
  CHECK(tools::is_text("\x1b[31mdía 漢 😀"));
  for (std::string bytes : {std::string("a\0b", 3), std::string("\xFF"), std::string("\xE6\xBC"),
                            std::string("\xED\xA0\x80")})
    CHECK(!tools::is_text(bytes));
  const std::string wide = "x漢😀";
  for (std::size_t cut = 0; cut <= wide.size(); ++cut) {
    CAPTURE(cut);
    std::string_view kept = tools::without_cut_end(std::string_view(wide).substr(0, cut));
    CHECK(tools::is_text(kept));
    CHECK(cut - kept.size() < 4);
  }
  CHECK(tools::without_cut_end(wide) == wide);
  CHECK(tools::without_cut_end("\x80\x80\x80\x80").size() == 4);  // no beginning to cut off
}

TEST_CASE("a name stays on its line") {
  CHECK(tools::one_line("a\nb\tc") == "a b c");
  CHECK(tools::one_line("\x1b[31mred\x1b[0m") == "red");
}
