#include "schemas/parse.hpp"

#include <doctest/doctest.h>

#include <string>

TEST_CASE("what is read can be written again") {
  for (const char* text :
       {"1e308", "-1.7e308", "1e-400", "0", "[{\"a\":[0.5,18446744073709551615]}]"}) {
    CAPTURE(text);
    boost::system::error_code malformed;
    auto value = schemas::parse(text, malformed);
    REQUIRE_FALSE(malformed);
    CHECK(schemas::parse(boost::json::serialize(value), malformed) == value);
    CHECK_FALSE(malformed);
  }
}

TEST_CASE("a number that no double holds is not read") {
  for (const char* text : {"1e400", "-1e400", "0e400", "[0,[1e400]]", "{\"a\":{\"b\":1e999999}}"}) {
    CAPTURE(text);
    boost::system::error_code malformed;
    schemas::parse(text, malformed);
    CHECK(malformed);
  }
}

TEST_CASE("no deeper than it may") {
  boost::system::error_code malformed;
  schemas::parse("[[[]]]", malformed, 3);
  CHECK_FALSE(malformed);
  schemas::parse("[[[]]]", malformed, 2);
  CHECK(malformed);
}
