// snapshot, restore_snapshot, delete_snapshot, and snapshots in list_sessions.

#include <doctest/doctest.h>

#include <fstream>
#include <set>

#include "tests/tools/fake_backend.hpp"

namespace fs = std::filesystem;
namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

struct Words : json::object {
  Words(std::initializer_list<std::pair<const char*, std::string>> words) {
    for (const auto& [key, value] : words)
      if (!value.empty()) (*this)[key] = value;
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string run(fake::World& world, const std::string& code, const std::string& session = "") {
  return fake::text_of(world.call("run_python", Words{{"code", code}, {"session", session}}));
}

std::string call(fake::World& world, const char* tool, Words arguments, bool fails = false) {
  auto result = world.call(tool, arguments);
  CHECK(result.isError.value_or(false) == fails);
  return fake::text_of(result);
}

// The word that stands behind `before`.
std::string word_after(const std::string& text, const std::string& before) {
  std::size_t at = text.find(before);
  REQUIRE(at != text.npos);
  at += before.size();
  return text.substr(at, text.find_first_of(" :.\"", at) - at);
}

std::string handle_of(fake::World& world) { return world.sessions.live("local").at(0)->handle(); }

struct WithImages : fake::World {
  explicit WithImages(tools::SessionPolicy policy = {}) : fake::World(std::move(policy)) {
    backend.images = true;
  }
};

std::string read(const fs::path& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

TEST_CASE("a snapshot has variables and files, and can be restored as any number of sessions") {
  WithImages world;
  world.backend.lost = {"fd 7: a TCP socket"};
  run(world, "set x 1");
  std::string origin = handle_of(world);
  fs::path workspace = world.sessions.find("local", origin)->workspace();
  std::ofstream(workspace / "data.csv") << "a,b\n";
  std::string made = call(world, "snapshot", {{"name", "before"}});
  std::string id = word_after(made, "Snapshot ");
  CHECK(contains(made, "Snapshot " + id + " \"before\" of session " + origin +
                           ", after execution 1: memory 4 KiB, files 4 KiB; the kernel stood still "
                           "for 7 ms and goes on. Not in it: fd 7: a TCP socket."));
  run(world, "set x 2");
  std::ofstream(workspace / "data.csv") << "changed";

  std::set<std::string> forks;
  for (const char* named : {"before", id.c_str(), "before"}) {
    std::string restored = call(world, "restore_snapshot", {{"snapshot", named}});
    CHECK(contains(restored, "was started from snapshot " + id +
                                 " \"before\": variables and files "
                                 "are as they were in session " +
                                 origin + " after execution 1."));
    std::string fork = word_after(restored, "Session ");
    CHECK(forks.insert(fork).second);
    CHECK(contains(run(world, "get x", fork), "]\n1"));
    CHECK(read(world.sessions.find("local", fork)->workspace() / "data.csv") == "a,b\n");
  }
  CHECK(run(world, "get x", origin) == "2");
  CHECK(read(workspace / "data.csv") == "changed");
  CHECK(world.backend.thaws == std::vector<sandbox::Thaw>(3, sandbox::Thaw::fork));
}

TEST_CASE("a session goes back to a snapshot: memory and files") {
  WithImages world;
  run(world, "set x 1");
  std::string handle = handle_of(world);
  fs::path workspace = world.sessions.find("local", handle)->workspace();
  std::ofstream(workspace / "old") << "old";
  std::string id = word_after(call(world, "snapshot", {}), "Snapshot ");
  run(world, "set x 2");
  fs::remove(workspace / "old");
  std::ofstream(workspace / "new") << "new";
  bool alive = true;
  SUBCASE("while its kernel runs") {}
  SUBCASE("after its kernel died") {
    run(world, "die");
    alive = false;
  }
  std::string restored = call(world, "restore_snapshot", {{"snapshot", id}, {"session", handle}});
  CHECK(contains(restored, "Session " + handle + " went back to snapshot " + id));
  CHECK(contains(restored, "What it had since then is gone."));
  CHECK(world.backend.thaws.back() == sandbox::Thaw::snapshot);
  CHECK(run(world, "get x", handle) == "1");
  CHECK(read(workspace / "old") == "old");
  CHECK(!fs::exists(workspace / "new"));
  CHECK(!fs::exists(workspace.parent_path() / "workspace.new"));
  CHECK(world.backend.sandboxes.size() == 1);
  CHECK(world.store.list("local").at(0).generation == 2);  // what came later is lost
  CHECK(alive == (world.backend.starts == 1 && world.backend.cells.size() == 3));
}

TEST_CASE("a snapshot that cannot be restored changes nothing") {
  WithImages world;
  run(world, "set x 1");
  std::string handle = handle_of(world);
  fs::path workspace = world.sessions.find("local", handle)->workspace();
  std::string id = word_after(call(world, "snapshot", {}), "Snapshot ");
  std::ofstream(workspace / "new") << "new";
  fs::path state = world.directory / "snapshots" / id / "image" / "state";
  std::string why;
  SUBCASE("damaged") {
    std::ofstream(state) << "?";
    why = "its image is damaged, or it is not the one of this snapshot.";
  }
  SUBCASE("gone") {
    fs::remove(state);
    why = "its image is damaged, or it is not the one of this snapshot.";
  }
  SUBCASE("no kernel to be had") {
    world.backend.refusal = "no isolation";
    why = "no isolation.";
  }
  std::string there =
      call(world, "restore_snapshot", {{"snapshot", id}, {"session", handle}}, true);
  CHECK(contains(there, why + " Session " + handle + " is as it was."));
  std::string anew = call(world, "restore_snapshot", {{"snapshot", id}}, true);
  CHECK(contains(anew, why + " No session was made."));
  world.backend.refusal.clear();
  CHECK(run(world, "get x", handle) == "1");
  CHECK(fs::exists(workspace / "new"));
  CHECK(world.sessions.live("local").size() == 1);
}

TEST_CASE("a snapshot is of one principal, one template") {
  WithImages world;
  run(world, "set x 1");
  std::string id = word_after(call(world, "snapshot", {{"name", "mine"}}), "Snapshot ");
  SUBCASE("another principal does not see it") {
    world.peer.principal = "eve";
    for (const char* tool : {"restore_snapshot", "delete_snapshot"})
      for (const std::string& name : {id, std::string("mine")})
        CHECK(contains(call(world, tool, {{"snapshot", name}}, true),
                       "is unknown, or was deleted. You have no snapshots."));
    CHECK(!contains(call(world, "list_sessions", {}), id));
  }
  SUBCASE("a session of another template cannot go back to it") {
    std::string other =
        word_after(call(world, "create_session", {{"template", "other"}}), "Created session ");
    CHECK(contains(call(world, "restore_snapshot", {{"snapshot", id}, {"session", other}}, true),
                   "Nothing was changed. Omit `session` to start a new one from it."));
  }
}

TEST_CASE("a kernel that cannot be frozen is explained, and goes on") {
  WithImages world;
  world.backend.freeze_refusal = "fd 7 is a TCP socket: close it, or say allow_lost";
  run(world, "set x 1");
  CHECK(contains(call(world, "snapshot", {}, true),
                 "The kernel cannot be frozen: fd 7 is a TCP socket: close it, or say allow_lost. "
                 "No snapshot was made, and the session goes on."));
  CHECK(run(world, "get x") == "1");
  for (const auto& left : fs::directory_iterator(world.directory / "snapshots"))
    CHECK(left.path().filename() == "lock");  // of the store itself
  json::object lossy;
  lossy["allow_lost"] = true;
  CHECK(!world.call("snapshot", lossy).isError.value_or(false));
}

TEST_CASE("names are unique, listed and can be used again") {
  WithImages world;
  run(world, "set x 1");
  std::string id = word_after(call(world, "snapshot", {{"name", "a"}}), "Snapshot ");
  CHECK(contains(call(world, "snapshot", {{"name", "a"}}, true),
                 "You already have a snapshot named \"a\""));
  CHECK(contains(call(world, "snapshot", {{"name", "a\nb"}}, true), "1 to 64 characters"));
  CHECK(contains(call(world, "list_sessions", {}), "Snapshot " + id + " \"a\": of session " +
                                                       handle_of(world) + " after execution 1, 4"));
  CHECK(contains(call(world, "restore_snapshot", {{"snapshot", "b"}}, true),
                 "Snapshot \"b\" is unknown, or was deleted. Yours: " + id + " \"a\"."));
  CHECK(contains(call(world, "delete_snapshot", {{"snapshot", "a"}}), "Deleted snapshot a."));
  CHECK(!fs::exists(world.directory / "snapshots" / id));
  CHECK(!world.call("snapshot", Words{{"name", "a"}}).isError.value_or(false));
}

TEST_CASE("snapshots are bounded: the next is refused with what to delete, none goes silently") {
  tools::SessionPolicy policy;
  std::string why;
  SUBCASE("in number") {
    policy.max_snapshots = 1;
    why = "You have 1 snapshots, as many as allowed. Yours: ";
  }
  SUBCASE("in bytes") {
    policy.disk = 6000;
    why = "There is no room for it: snapshots take ";
  }
  WithImages world(policy);
  run(world, "set x 1");
  std::string id = word_after(call(world, "snapshot", {}), "Snapshot ");
  std::string refused = call(world, "snapshot", {}, true);
  CHECK(contains(refused, why));
  CHECK(contains(refused, id));
  CHECK(contains(refused, "Delete one with delete_snapshot. No snapshot was made"));
  call(world, "delete_snapshot", {{"snapshot", id}});
  CHECK(!world.call("snapshot", {}).isError.value_or(false));
}

TEST_CASE("a session on disk wakes for its snapshot, one without a kernel gets one") {
  WithImages world;
  run(world, "set x 1");
  std::string handle = handle_of(world);
  world.wait(world.sessions.shutdown());
  std::string id = word_after(call(world, "snapshot", {{"session", handle}}), "Snapshot ");
  std::string fork = word_after(call(world, "restore_snapshot", {{"snapshot", id}}), "Session ");
  CHECK(contains(run(world, "get x", fork), "]\n1"));
  CHECK(contains(run(world, "get x", handle), "The kernel was restored from disk"));
  CHECK(contains(call(world, "snapshot", {}), "before its first execution"));
}

TEST_CASE("restores and snapshots at once keep apart") {
  WithImages world;
  run(world, "set x 1");
  call(world, "snapshot", {{"name", "a"}});
  std::set<std::string> forks;
  for (const auto& result : world.call_together(8, "restore_snapshot", Words{{"snapshot", "a"}}))
    forks.insert(word_after(fake::text_of(result), "Session "));
  CHECK(forks.size() == 8);
  std::size_t made = 0;
  for (const auto& result : world.call_together(5, "snapshot", Words{{"name", "b"}}))
    if (!result.isError.value_or(false)) ++made;
  CHECK(made == 1);  // of one name
}

TEST_CASE("a snapshot whose caller gave up is whole or absent") {
  WithImages world;
  run(world, "set x 1");
  world.backend.freeze_takes = 50ms;
  world.give_up_after(10ms, "snapshot", {});
  for (const auto& entry : fs::directory_iterator(world.directory / "snapshots"))
    CHECK((entry.path().filename() == "lock" || fs::exists(entry.path() / "snapshot.json")));
  CHECK(run(world, "get x") == "1");
}

TEST_CASE("snapshots that are too old are deleted, as long as somebody wants that") {
  for (auto keep : {0h, 1h}) {
    tools::SessionPolicy policy;
    policy.snapshot_keep = keep;
    WithImages world(policy);
    run(world, "ok");
    call(world, "snapshot", Words{{"name", "young"}});
    sandbox::SnapshotRecord record;
    record.id = "old";
    record.principal = "local";
    record.created = 1;
    {
      auto draft = world.snapshot_store.begin(record);
      world.snapshot_store.commit(draft);
    }
    world.wait(world.snapshots.sweep());
    auto left = world.wait(world.snapshots.list("local"));
    REQUIRE(left.size() == (keep == 0h ? 2 : 1));
    CHECK(left[0].name == "young");
  }
}
