#include "transport/http/file_headers.hpp"

#include <doctest/doctest.h>

using namespace transport::http;

TEST_CASE("one range of a file of ten bytes") {
  struct Row {
    const char* header;
    std::optional<ByteRange> range;
  };
  for (const Row& row : {
           Row{"bytes=0-3", ByteRange{0, 4}},
           Row{"bytes=4-", ByteRange{4, 6}},
           Row{"bytes=9-9", ByteRange{9, 1}},
           Row{"bytes=4-99", ByteRange{4, 6}},
           Row{"bytes=-3", ByteRange{7, 3}},
           Row{"bytes=-99", ByteRange{0, 10}},
           Row{"bytes=10-", ByteRange{0, 0}},
           Row{"bytes=-0", ByteRange{10, 0}},
           Row{"bytes=3-1", std::nullopt},
           Row{"bytes=-", std::nullopt},
           Row{"bytes=1-2,5-6", std::nullopt},
           Row{"bytes=x-2", std::nullopt},
           Row{"bytes=1-2x", std::nullopt},
           Row{"bytes=+1-2", std::nullopt},
           Row{"bytes=99999999999999999999-", std::nullopt},
           Row{"lines=1-2", std::nullopt},
           Row{"", std::nullopt},
       }) {
    CAPTURE(row.header);
    auto range = byte_range(row.header, 10);
    CHECK(range.has_value() == row.range.has_value());
    if (!range || !row.range) continue;
    CHECK(range->offset == row.range->offset);
    CHECK(range->size == row.range->size);
  }
  CHECK(byte_range("bytes=0-", 0)->size == 0);
}

TEST_CASE("a name cannot leave its quotes, whatever it is") {
  struct Row {
    std::string name, header;
  };
  for (const Row& row : {
           Row{"a.csv", "attachment; filename=\"a.csv\"; filename*=UTF-8''a.csv"},
           Row{"a b.csv", "attachment; filename=\"a b.csv\"; filename*=UTF-8''a%20b.csv"},
           Row{"día.txt", "attachment; filename=\"d__a.txt\"; filename*=UTF-8''d%C3%ADa.txt"},
           Row{"x\"; y", "attachment; filename=\"x_; y\"; filename*=UTF-8''x%22%3B%20y"},
           Row{"x\r\nA: b", "attachment; filename=\"x__A: b\"; filename*=UTF-8''x%0D%0AA%3A%20b"},
           Row{"50%\\'", "attachment; filename=\"50__'\"; filename*=UTF-8''50%25%5C%27"},
       }) {
    CAPTURE(row.name);
    CHECK(attachment(row.name) == row.header);
  }
}

TEST_CASE("nothing that a browser would run is told as what it is") {
  CHECK(inert_type("a.png") == "image/png");
  CHECK(inert_type("a.csv") == "text/csv");
  for (const char* name : {"a.html", "a.svg", "a.xml", "a.js", "a.pdf", "a", ".png.exe", ""})
    CHECK_MESSAGE(inert_type(name) == "application/octet-stream", name);
}
