#include "sandbox/pandastack/wire.hpp"

#include <doctest/doctest.h>

namespace sandbox::pandastack {
namespace {

boost::json::value parsed(const char* text) { return boost::json::parse(text); }

}  // namespace

TEST_CASE("a sandbox, as the versions of the server write it") {
  // 201 of create: the order of Go's struct, nanoseconds.
  SandboxInfo created = read_sandbox(parsed(
      R"({"id":"3f0c2a1e-7b54-4c0e-9d6b-0a5f2f9c1d11","template":"code-interpreter","cpu":8,
          "memory_mb":2048,"status":"running","guest_ip":"10.200.0.6","host_tap":"ns-00012",
          "mac":"06:00:ac:10:00:02","vsock_cid":0,
          "metadata":{"mcp.session":"abc","purpose":"mcp","workspace":"ws_demo"},"boot_ms":61,
          "boot_mode":"snapshot-natid","created_at":"2026-09-24T10:15:30.123456789Z"})"));
  CHECK(created.id == "3f0c2a1e-7b54-4c0e-9d6b-0a5f2f9c1d11");
  CHECK(created.cpu == 8);
  CHECK(created.memory_mb == 2048);
  CHECK(created.status == "running");
  CHECK(created.metadata ==
        Metadata{{"mcp.session", "abc"}, {"purpose", "mcp"}, {"workspace", "ws_demo"}});

  // The least, and what makes no sense.
  for (const char* text :
       {R"({"id":"x"})",
        R"({"id":"x","template":null,"cpu":null,"metadata":null,"created_at":null})",
        R"({"id":"x","template":7,"cpu":"8","memory_mb":-1e300,"metadata":["a"],"boot_ms":1.5})",
        R"({"id":"x","metadata":{"a":7},"future":{"a":[{}]}})"}) {
    CAPTURE(text);
    SandboxInfo least = read_sandbox(parsed(text));
    CHECK(least.id == "x");
    CHECK(least.cpu == 0);
    CHECK(least.memory_mb == 0);
    CHECK(least.metadata.empty());
  }
  for (const char* text :
       {"null", "[]", "7", R"({"id":null})", R"({"id":""})", R"({"id":7})", R"({"id":"../me"})",
        R"({"id":"a/b"})", R"({"id":"a\nb"})", R"({"id":"a\u0000"})", R"({"id":"."})", "{}"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(read_sandbox(parsed(text)), std::runtime_error);
  }
}

TEST_CASE("lists are bare, null, or in an object") {
  struct Row {
    const char* text;
    std::size_t size;
  };
  for (const Row& row :
       {Row{R"([{"id":"a"},{"id":"b"}])", 2}, Row{"[]", 0}, Row{"null", 0},
        Row{R"({"items":[{"id":"a"}]})", 1}, Row{R"({"items":null})", 0}, Row{"{}", 0}}) {
    CAPTURE(row.text);
    CHECK(read_sandboxes(parsed(row.text)).size() == row.size);
  }
  for (const char* text : {"7", "\"\"", R"({"items":7})", R"([7])", R"([{"id":"a"},null])"})
    CHECK_THROWS_AS(read_sandboxes(parsed(text)), std::runtime_error);
}

TEST_CASE("snapshots, commands and accounts") {
  CHECK(read_id(parsed(
            R"({"id":"9a4f6b1c","sandbox_id":"3f0c2a1e","created_at":"2026-09-24T10:20:00.5Z",
          "mem_path":"/var/lib/vm.mem","state_path":"/var/lib/vm.state"})")) == "9a4f6b1c");

  ExecResult result = read_exec(parsed(R"({"stdout":"Linux\n","stderr":"oops\n","exit_code":3})"));
  CHECK(result.exit_code == 3);
  CHECK(result.standard_output == "Linux\n");
  CHECK(result.standard_error == "oops\n");
  CHECK_THROWS_AS(read_exec(parsed(R"({"stdout":"Linux\n"})")), std::runtime_error);

  Identity identity = read_identity(parsed(
      R"({"user_id":"u1","email":"me@example.com","current_org":{"id":"o1","name":"Org"}})"));
  CHECK(identity.user == "me@example.com");
  identity = read_identity(parsed(R"({"user_id":"u1","email":"","current_org":"o1","orgs":null})"));
  CHECK(identity.user == "u1");
}

TEST_CASE("percent encoding") {
  CHECK(percent_encoded("/workspace/a b+c&d=é%?#.txt") ==
        "%2Fworkspace%2Fa%20b%2Bc%26d%3D%C3%A9%25%3F%23.txt");
  CHECK(percent_encoded("AZaz09-._~") == "AZaz09-._~");
  CHECK(percent_encoded(std::string("\0\n", 2)) == "%00%0A");
}

}  // namespace sandbox::pandastack
