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
  CHECK(created.template_name == "code-interpreter");
  CHECK(created.cpu == 8);
  CHECK(created.memory_mb == 2048);
  CHECK(created.status == "running");
  CHECK(created.metadata ==
        Metadata{{"mcp.session", "abc"}, {"purpose", "mcp"}, {"workspace", "ws_demo"}});
  CHECK(created.boot_ms == 61);
  CHECK(created.boot_mode == "snapshot-natid");
  CHECK(created.from_snapshot == "");

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
       {"null", "[]", "7", R"({"id":null})", R"({"id":""})", R"({"id":7})", "{}"}) {
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

  CHECK(read_directory(parsed(R"({"entries":null,"path":"/empty"})")).empty());
  CHECK(read_snapshots(parsed(R"({"snapshots":null})")).empty());
}

TEST_CASE("a snapshot, from the agent and from the registry") {
  SnapshotInfo made = read_snapshot(parsed(
      R"({"id":"9a4f6b1c","sandbox_id":"3f0c2a1e","created_at":"2026-09-24T10:20:00.5Z",
          "mem_path":"/var/lib/vm.mem","state_path":"/var/lib/vm.state"})"));
  CHECK(made.id == "9a4f6b1c");
  CHECK(made.sandbox_id == "3f0c2a1e");
  CHECK(made.size_bytes == 0);
  auto listed = read_snapshots(parsed(
      R"({"snapshots":[{"id":"9a4f6b1c","workspace":"ws_demo","sandbox_id":"3f0c2a1e",
          "template":"code-interpreter","size_bytes":5000000000,"created_at":"2026-09-24T10:20:00Z"}]})"));
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].template_name == "code-interpreter");
  CHECK(listed[0].size_bytes == 5'000'000'000);
}

TEST_CASE("a fork with a child that failed") {
  ForkTree tree = read_fork_tree(parsed(
      R"({"tree_id":"d1e2f3a4","parent_id":"3f0c2a1e","snapshot_id":"9a4f6b1c",
          "children":[{"id":"b7a9d3c4","guest_ip":"10.200.0.10","boot_ms":212,"boot_mode":"snapshot"}],
          "at":"2026-09-24T10:31:00Z","errors":[{"index":1,"err":"snapshot restore: snap load: ..."}]})"));
  CHECK(tree.tree_id == "d1e2f3a4");
  CHECK(tree.snapshot_id == "9a4f6b1c");
  REQUIRE(tree.children.size() == 1);
  CHECK(tree.children[0].id == "b7a9d3c4");
  CHECK(tree.children[0].boot_ms == 212);
  CHECK(tree.errors == std::vector<std::string>{"snapshot restore: snap load: ..."});

  CHECK(read_fork_tree(parsed(R"({"children":["a","b"]})")).children.size() == 2);
  CHECK(read_fork_tree(parsed(R"({"children":null,"errors":null})")).children.empty());
  CHECK_THROWS_AS(read_fork_tree(parsed(R"({"children":[{}]})")), std::runtime_error);
}

TEST_CASE("commands, files, TTLs and accounts") {
  ExecResult result = read_exec(parsed(R"({"stdout":"Linux\n","stderr":"oops\n","exit_code":3})"));
  CHECK(result.exit_code == 3);
  CHECK(result.standard_output == "Linux\n");
  CHECK(result.standard_error == "oops\n");
  CHECK_THROWS_AS(read_exec(parsed(R"({"stdout":"Linux\n"})")), std::runtime_error);

  auto entries = read_directory(parsed(
      R"({"entries":[{"name":"data","is_dir":true,"size":4096,"mode":"d","mtime":1790245000},
          {"name":"a.csv","is_dir":false,"size":120,"mode":"f","mtime":1790245001},
          {"name":"a","is_dir":false,"size":5,"mode":"l","mtime":1790245001}],"path":"/workspace"})"));
  REQUIRE(entries.size() == 3);
  CHECK(entries[0].is_directory);
  CHECK(entries[1].name == "a.csv");
  CHECK(entries[1].size == 120);
  CHECK(entries[1].modified == 1790245001);
  CHECK_FALSE(entries[1].is_link);
  CHECK(entries[2].is_link);

  Lifecycle lifecycle =
      read_lifecycle(parsed(R"({"ttl_seconds":1800,"persistent":false,"idle_seconds":12})"));
  CHECK(lifecycle.ttl_seconds == 1800);
  CHECK(lifecycle.idle_seconds == 12);
  CHECK_FALSE(lifecycle.persistent);

  Identity identity = read_identity(parsed(
      R"({"user_id":"u1","email":"me@example.com","current_org":{"id":"o1","name":"Org"}})"));
  CHECK(identity.user == "me@example.com");
  CHECK(identity.organisation == "Org");
  identity = read_identity(parsed(R"({"user_id":"u1","email":"","current_org":"o1","orgs":null})"));
  CHECK(identity.user == "u1");
  CHECK(identity.organisation == "o1");
}

TEST_CASE("percent encoding") {
  CHECK(percent_encoded("/workspace/a b+c&d=é%?#.txt") ==
        "%2Fworkspace%2Fa%20b%2Bc%26d%3D%C3%A9%25%3F%23.txt");
  CHECK(percent_encoded("AZaz09-._~") == "AZaz09-._~");
  CHECK(percent_encoded(std::string("\0\n", 2)) == "%00%0A");
}

}  // namespace sandbox::pandastack
