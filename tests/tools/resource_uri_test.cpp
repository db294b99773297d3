#include "tools/resource_uri.hpp"

#include <doctest/doctest.h>

using tools::parse_resource_uri;

TEST_CASE("a file's URI comes back as its path") {
  for (const char* path : {"a.csv", "outputs/3-1.png", "a/b/ü 名.csv", "100%.txt", "a?b#c"}) {
    CAPTURE(path);
    auto parsed = parse_resource_uri(tools::file_uri("abc", path));
    REQUIRE(parsed.has_value());
    CHECK(parsed->session == "abc");
    CHECK(parsed->file == path);
  }
  CHECK(tools::file_uri("abc", "ü 名") == "pykeep://sessions/abc/files/%C3%BC%20%E5%90%8D");
}

TEST_CASE("an execution's URI comes back as its number") {
  auto parsed = parse_resource_uri(tools::execution_uri("abc", 7));
  REQUIRE(parsed.has_value());
  CHECK(parsed->execution == 7);
}

TEST_CASE("other URIs are none of ours") {
  for (const char* uri :
       {"", "file:///etc/passwd", "pykeep://sessions/", "pykeep://sessions/a",
        "pykeep://sessions//files/x", "pykeep://sessions/a/files/", "pykeep://sessions/a/files/%",
        "pykeep://sessions/a/files/%2", "pykeep://sessions/a/files/%zz",
        "pykeep://sessions/a/executions/", "pykeep://sessions/a/other/x",
        "pykeep://sessions/a/executions/0", "pykeep://sessions/a/executions/-1",
        "pykeep://sessions/a/executions/1x", "pykeep://sessions/a/executions/99999999999"}) {
    CAPTURE(uri);
    CHECK_FALSE(parse_resource_uri(uri).has_value());
  }
}
