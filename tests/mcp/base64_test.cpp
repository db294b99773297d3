#include "mcp/base64.hpp"

#include <doctest/doctest.h>

TEST_CASE("base64: the vectors of RFC 4648, both ways") {
  struct Row {
    std::string plain, encoded;
  };
  for (const Row& row : {Row{"", ""}, Row{"f", "Zg=="}, Row{"fo", "Zm8="}, Row{"foo", "Zm9v"},
                         Row{"foob", "Zm9vYg=="}, Row{"fooba", "Zm9vYmE="},
                         Row{"foobar", "Zm9vYmFy"}, Row{"\xff\xef\xbe", "/+++"}}) {
    CAPTURE(row.encoded);
    CHECK(mcp::base64_encode(row.plain) == row.encoded);
    CHECK(mcp::base64_decode(row.encoded) == row.plain);
  }
}

TEST_CASE("base64: line breaks are accepted, anything else is not") {
  CHECK(mcp::base64_decode("Zm9v\r\nYmFy\n") == "foobar");
  for (const char* bad :
       {"Z", "Zg", "Zg=", "=Zg=", "Zg==Zg==", "Zm9v-", "Zm9v_A==", "data:,Zg==", "Zh==", "Zm9="}) {
    CAPTURE(bad);
    CHECK_FALSE(mcp::base64_decode(bad).has_value());
  }
}
