// Sessions that another process runs, left on disk, or is putting there.

#include <doctest/doctest.h>

#include <fstream>

#include "tests/tools/call_words.hpp"
#include "tests/tools/fake_backend.hpp"
#include "tools/sessions.hpp"

namespace json = boost::json;
using namespace std::chrono_literals;
using fake::code, fake::contains, fake::session_of, fake::with_session;

namespace {

// As another process does, with a session named "work".
sandbox::SessionLease hold(sandbox::SessionStore& store) {
  sandbox::SessionRecord record;
  record.id = "held-elsewhere";
  record.principal = "local";
  record.name = "work";
  return store.create(record);
}

// A policy for tests in which another process does not let go.
tools::SessionPolicy impatient() {
  tools::SessionPolicy policy;
  policy.hand_over = 50ms;
  return policy;
}

async::awaitable<void> reach(tools::Sessions& sessions, std::string handle) {
  co_await sessions.reach("local", handle);
}

async::awaitable<void> join(async::TaskGroup& group) { co_await group.join(); }

async::awaitable<void> release_after(std::chrono::milliseconds time, sandbox::SessionLease& lease) {
  co_await async::sleep_for(time);
  lease = {};
}

}  // namespace

TEST_CASE("what another process runs is not touched") {
  fake::World world(impatient());
  sandbox::SessionStore other(world.directory);
  sandbox::SessionLease lease = hold(other);
  for (const char* handle : {"held-elsewhere", "work"}) {
    auto result = world.call("run_python", with_session(code("ok"), handle));
    CHECK(result.isError == true);
    CHECK(contains(fake::text_of(result), "is in use by another pykeep process"));
  }
  CHECK(world.backend.starts == 0);
}

TEST_CASE("what another process is putting on disk is waited for") {
  struct Row {
    const char* default_name;
    json::object arguments;
  };
  json::object by_handle = with_session(code("ok"), "held-elsewhere");
  for (const Row& row : {Row{"work", code("ok")}, Row{"", by_handle}}) {
    CAPTURE(row.default_name);
    tools::SessionPolicy policy;
    policy.default_name = row.default_name;
    fake::World world(policy);
    sandbox::SessionStore other(world.directory);
    sandbox::SessionLease lease = hold(other);
    async::TaskGroup tasks(world.io.get_executor());
    tasks.spawn(release_after(200ms, lease));
    auto result = world.call("run_python", row.arguments);
    CHECK(session_of(result) == "held-elsewhere");
    CHECK(contains(fake::text_of(result), "was taken over from disk, with its files"));
  }
}

TEST_CASE("who waits for another process is not in the way of other sessions") {
  tools::SessionPolicy policy;
  policy.hand_over = 100s;
  fake::World world(policy);
  sandbox::SessionStore other(world.directory);
  sandbox::SessionLease lease = hold(other);
  async::TaskGroup tasks(world.io.get_executor());
  tasks.spawn(reach(world.sessions, "held-elsewhere"));
  auto begun = std::chrono::steady_clock::now();
  CHECK(world.call("create_session", {}).isError != true);
  CHECK(std::chrono::steady_clock::now() - begun < 20s);
  tasks.cancel();
  world.wait(join(tasks));
}

TEST_CASE("a session on disk is taken over, with its files") {
  fake::World world;
  {
    sandbox::SessionStore other(world.directory);
    sandbox::SessionLease lease = hold(other);
    lease.record.generation = 3;
    other.save(lease);
    std::ofstream(lease.workspace() / "data.csv") << "a,b\n";
  }
  auto result = world.call("run_python", with_session(code("ok"), "work"));
  std::string text = fake::text_of(result);
  CHECK(session_of(result) == "held-elsewhere");
  CHECK(contains(text, "Session held-elsewhere was taken over from disk, with its files."));
  CHECK(contains(text, "A new kernel was started: the last one ended with the server that ran it"));
  CHECK(contains(text, "Variables from before are gone; files in /workspace are kept."));
  CHECK(result._meta->at("io.pykeep/execution").at("generation") == 4);
  CHECK(contains(fake::text_of(world.call("list_files", {})), "(no files)"));  // of the default one
  CHECK(contains(fake::text_of(world.call("list_files", with_session({}, "work"))), "data.csv"));
}

TEST_CASE("--session NAME: the default session is durable") {
  tools::SessionPolicy policy = impatient();
  policy.default_name = "work";
  fake::World world(policy);
  std::string handle;
  SUBCASE("it is made once, and found again by the next process") {
    handle = session_of(world.call("run_python", code("ok")));
    world.wait(world.sessions.shutdown());
    auto again = world.call("run_python", code("ok"));
    CHECK(session_of(again) == handle);
    CHECK(contains(fake::text_of(again), "was taken over from disk"));
  }
  SUBCASE("while another process has it, a fresh one is used, which the first result says") {
    sandbox::SessionStore other(world.directory);
    sandbox::SessionLease lease = hold(other);
    auto result = world.call("run_python", code("ok"));
    CHECK(session_of(result) != "held-elsewhere");
    CHECK(contains(fake::text_of(result),
                   "Session \"work\" is in use by another pykeep process, so this is a fresh one"));
  }
}
