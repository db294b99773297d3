#include "sandbox/snapshot_store.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/scratch.hpp"

using sandbox::SnapshotHold;
using sandbox::SnapshotLimits;
using sandbox::SnapshotRecord;
using sandbox::SnapshotStore;
using sandbox::StoreError;
namespace fs = std::filesystem;

namespace {

using Directory = testing::Scratch;

SnapshotRecord record(const std::string& id, const char* name = "") {
  SnapshotRecord record;
  record.id = id;
  record.principal = "ada";
  record.name = name;
  record.python = "default";
  record.image_bytes = 1000;
  record.created = 100;
  return record;
}

void make(SnapshotStore& store, const SnapshotRecord& record) {
  SnapshotHold draft = store.begin(record);
  fs::create_directory(draft.image());
  std::ofstream(draft.image() / "state") << "memory";
  std::ofstream(draft.workspace() / "file") << "file";
  store.commit(draft);
}

std::string refusal(SnapshotStore& store, const SnapshotRecord& record) {
  try {
    make(store, record);
  } catch (const StoreError& refused) {
    return refused.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t entries(const fs::path& directory) {
  std::size_t count = 0;
  std::error_code absent;  // a process that was killed at once has made nothing
  for (const auto& entry : fs::directory_iterator(directory, absent))
    if (entry.path().filename() != "lock") ++count;
  return count;
}

}  // namespace

TEST_CASE("a snapshot is found by its owner, by id and by name, as often as wanted") {
  Directory directory;
  SnapshotStore store(directory.path, {});
  make(store, record("one", "first"));
  for (const char* name : {"one", "first"}) {
    auto held = store.open("ada", name), again = store.open("ada", name);
    REQUIRE(held);
    CHECK(again);
    CHECK(held->record.id == "one");
    CHECK(fs::exists(held->image() / "state"));
    CHECK(fs::exists(held->workspace() / "file"));
  }
  CHECK(!store.open("eve", "one"));
  CHECK(!store.open("ada", "../one"));
  CHECK(!store.open("ada", ""));
  CHECK(store.list("ada").size() == 1);
  CHECK(store.list("eve").empty());
  CHECK(store.list(std::nullopt).size() == 1);
}

TEST_CASE("everything is private to its user") {
  Directory directory;
  SnapshotStore store(directory.path / "state", {});
  make(store, record("one"));
  fs::path snapshots = directory.path / "state" / "snapshots";
  for (const fs::path& path : {snapshots, snapshots / "one", snapshots / "one" / "workspace",
                               snapshots / "one" / "snapshot.json"}) {
    CAPTURE(path);
    CHECK((fs::status(path).permissions() & (fs::perms::group_all | fs::perms::others_all)) ==
          fs::perms::none);
  }
}

TEST_CASE("one that is begun is nowhere to be seen, and is gone when it is not to be") {
  Directory directory;
  SnapshotStore store(directory.path, {});
  SnapshotHold draft = store.begin(record("one", "first"));
  CHECK(store.list("ada").empty());
  CHECK(!store.open("ada", "one"));
  CHECK(!store.open("ada", "first"));
  store.sweep();  // somebody is at it
  CHECK(fs::exists(draft.workspace()));
  store.discard(std::move(draft));
  CHECK(entries(directory.path / "snapshots") == 0);
}

TEST_CASE("what is held is not deleted") {
  Directory directory;
  SnapshotStore store(directory.path, {}), other(directory.path, {});
  make(store, record("one"));
  {
    auto held = store.open("ada", "one");
    CHECK(other.remove("ada", "one") == SnapshotStore::Removal::busy);
    CHECK(fs::exists(held->image() / "state"));
  }
  CHECK(other.remove("eve", "one") == SnapshotStore::Removal::absent);
  CHECK(other.remove("ada", "one") == SnapshotStore::Removal::removed);
  CHECK(other.remove("ada", "one") == SnapshotStore::Removal::absent);
  CHECK(entries(directory.path / "snapshots") == 0);
}

TEST_CASE("names are unique per principal, numbers and bytes are bounded") {
  Directory directory;
  SnapshotLimits limits;
  limits.per_principal = 3;
  limits.disk = 3500;
  SnapshotStore store(directory.path, limits);
  make(store, record("one", "a"));
  CHECK(contains(refusal(store, record("two", "a")), "already have a snapshot named \"a\""));
  SnapshotRecord large = record("large");
  large.image_bytes = 3000;
  CHECK(contains(refusal(store, large), "There is no room for it: snapshots take "));
  CHECK(contains(refusal(store, large), "Yours: one \"a\" ("));
  SnapshotRecord foreign = record("foreign", "a");
  foreign.principal = "eve";
  CHECK(refusal(store, foreign).empty());
  CHECK(refusal(store, record("two")).empty());
  CHECK(store.room() == 500);
  limits.disk = 1 << 20;
  SnapshotStore roomy(directory.path, limits);
  CHECK(refusal(roomy, record("three")).empty());
  CHECK(contains(refusal(roomy, record("four")), "You have 3 snapshots, as many as allowed"));
}

TEST_CASE("a sweep deletes what was left unfinished, and age is told") {
  Directory directory;
  SnapshotStore store(directory.path, {});
  make(store, record("one"));
  { SnapshotHold left = store.begin(record("two")); }  // its process died
  CHECK(entries(directory.path / "snapshots") == 2);
  store.sweep();
  CHECK(entries(directory.path / "snapshots") == 1);
  CHECK(store.made_before(100).empty());
  CHECK(store.made_before(101).size() == 1);
}

TEST_CASE("a damaged record is no snapshot, and does not disturb the others") {
  Directory directory;
  SnapshotStore store(directory.path, {});
  make(store, record("sound"));
  fs::create_directories(directory.path / "snapshots" / "hurt");
  for (const char* text : {"", "{", "[]", "{\"id\":\"hurt\"}", "\xFF\xFE"}) {
    std::ofstream(directory.path / "snapshots" / "hurt" / "snapshot.json") << text;
    CHECK(!store.open("ada", "hurt"));
    CHECK(store.list("ada").size() == 1);
  }
}

TEST_CASE("a process that is killed at any moment leaves whole snapshots or nothing") {
  Directory directory;
  for (int round = 0; round < 60; ++round) {
    pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      SnapshotStore store(directory.path, {});
      for (int i = 0; i < 1000; ++i) {
        std::string id = std::to_string(round) + "-" + std::to_string(i);
        make(store, record(id));
        store.remove("ada", id);
      }
      _exit(0);
    }
    usleep(static_cast<useconds_t>(1000 + 331 * round % 20'000));
    kill(child, SIGKILL);
    REQUIRE(waitpid(child, nullptr, 0) == child);
    SnapshotStore store(directory.path, {});
    for (const SnapshotRecord& each : store.list("ada")) {
      auto held = store.open("ada", each.id);
      REQUIRE(held);
      CHECK(fs::exists(held->image() / "state"));
      CHECK(fs::exists(held->workspace() / "file"));
    }
    store.sweep();
    CHECK(entries(directory.path / "snapshots") == store.list("ada").size());
    for (const SnapshotRecord& each : store.list("ada")) store.remove("ada", each.id);
  }
}
