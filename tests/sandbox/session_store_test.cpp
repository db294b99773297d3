#include "sandbox/session_store.hpp"

#include <doctest/doctest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/scratch.hpp"

using sandbox::SessionLease;
using sandbox::SessionRecord;
using sandbox::SessionStore;
using sandbox::StoreError;
using State = SessionStore::Lookup::State;
namespace fs = std::filesystem;

namespace {

using Directory = testing::Scratch;

SessionRecord record(const char* id, std::int64_t used = 0, const char* name = "") {
  SessionRecord record;
  record.id = id;
  record.principal = "ada";
  record.name = name;
  record.python = "default";
  record.generation = 2;
  record.used = used;
  return record;
}

// The tests may run as root, whom permissions do not stop.
class AsOrdinaryUser {
 public:
  explicit AsOrdinaryUser(const fs::path& own) {
    if (geteuid() != 0) return;
    REQUIRE(chown(own.c_str(), kNobody, kNobody) == 0);
    REQUIRE(seteuid(kNobody) == 0);
  }
  ~AsOrdinaryUser() {
    if (getuid() == 0) (void)!seteuid(0);
  }

 private:
  static constexpr uid_t kNobody = 65534;
};

std::string message(SessionStore& store, const char* id) {
  try {
    store.create(record(id));
  } catch (const StoreError& failure) {
    return failure.what();
  }
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void fill(const SessionLease& lease, std::size_t bytes) {
  std::ofstream(lease.workspace() / "data") << std::string(bytes, 'x');
}

}  // namespace

TEST_CASE("a session is found by its owner, by id and by name, once nobody holds it") {
  Directory directory;
  SessionStore store(directory.path / "state"), other(directory.path / "state");
  {
    SessionLease lease = store.create(record("one", 5, "work"));
    CHECK(other.open("ada", "one").state == State::busy);
    CHECK(other.open_named("ada", "work").state == State::busy);
    lease.record.generation = 7;
    store.save(lease);
  }
  CHECK(other.open("eve", "one").state == State::absent);
  CHECK(other.open("ada", "../one").state == State::absent);
  CHECK(other.open("ada", "two").state == State::absent);
  CHECK(other.open_named("eve", "work").state == State::absent);
  auto found = other.open_named("ada", "work");
  REQUIRE(found.state == State::leased);
  CHECK(found.lease->record.id == "one");
  CHECK(found.lease->record.generation == 7);
  CHECK(fs::is_directory(found.lease->workspace()));
  CHECK(store.open("ada", "one").state == State::busy);
}

TEST_CASE("everything is private to its user") {
  Directory directory;
  SessionStore store(directory.path / "state");
  SessionLease lease = store.create(record("one"));
  for (const fs::path& path :
       {directory.path / "state", directory.path / "state" / "sessions", lease.directory,
        lease.workspace(), lease.directory / "session.json"}) {
    CAPTURE(path);
    CHECK((fs::status(path).permissions() & (fs::perms::group_all | fs::perms::others_all)) ==
          fs::perms::none);
  }
}

TEST_CASE("sessions are listed by last use, whoever runs them") {
  Directory directory;
  SessionStore store(directory.path);
  CHECK(store.list("ada").empty());
  SessionLease held = store.create(record("old", 1));
  store.create(record("new", 9));
  auto all = store.list("ada");
  REQUIRE(all.size() == 2);
  CHECK(all[0].id == "new");
  CHECK(store.list("eve").empty());
}

TEST_CASE("a damaged record is no session, and does not disturb the others") {
  Directory directory;
  SessionStore store(directory.path);
  store.create(record("sound"));
  fs::path file = directory.path / "sessions" / "hurt" / "session.json";
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{\"id\":\"hurt\"}"),
        std::string("{\"id\":\"sound\",\"principal\":\"ada\",\"name\":\"\",\"python\":\"\","
                    "\"network\":false,\"generation\":0,\"created\":0,\"used\":0}"),
        std::string(100'000, ' '), std::string("\xFF\xFE")}) {
    CAPTURE(text.substr(0, 40));
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
    CHECK(store.open("ada", "hurt").state == State::absent);
    CHECK(store.list("ada").size() == 1);
  }
}

TEST_CASE("a state directory that cannot be written says so, and how to go on") {
  Directory directory;
  SessionStore store(directory.path / "state");
  SUBCASE("read-only") {
    AsOrdinaryUser ordinary(directory.path);
    fs::permissions(directory.path, fs::perms::owner_read | fs::perms::owner_exec);
    std::string text = message(store, "one");
    CHECK(contains(text, (directory.path / "state").string() + ": Permission denied."));
    CHECK(contains(text, "choose another place with --state-dir"));
    fs::permissions(directory.path, fs::perms::owner_all);
  }
  SUBCASE("a file") {
    std::ofstream(directory.path / "state") << "";
    CHECK(contains(message(store, "one"), "Not a directory"));
  }
  SUBCASE("a link, which might lead anywhere") {
    fs::create_directory_symlink("/tmp", directory.path / "state");
    CHECK(contains(message(store, "one"), "Not a directory"));
  }
}

TEST_CASE("a full disk loses nothing") {
  Directory directory;
  if (geteuid() != 0 || mount("tmpfs", directory.path.c_str(), "tmpfs", 0, "size=16k") != 0) {
    MESSAGE("skipped: only root can mount the small file system this needs");
    return;
  }
  {
    SessionStore store(directory.path);
    SessionLease lease = store.create(record("one"));
    std::ofstream(lease.workspace() / "data") << std::string(64 << 10, 'x');  // as much as fits
    lease.record.generation = 99;
    std::string text;
    try {
      store.save(lease);
    } catch (const StoreError& failure) {
      text = failure.what();
    }
    CHECK(contains(text, "No space left on device. Free some space; nothing was changed."));
    CHECK(contains(message(store, "two"), "No space left on device"));
    CHECK(store.list("ada").size() == 1);
    CHECK(store.list("ada")[0].generation == 2);
    CHECK(!fs::exists(directory.path / "sessions" / "two"));
  }
  umount2(directory.path.c_str(), MNT_DETACH);
}

TEST_CASE("a sweep deletes what is too old, then the least recently used beyond the cap") {
  Directory directory;
  SessionStore store(directory.path);
  {
    for (int i = 1; i <= 4; ++i) {
      SessionLease lease = store.create(record(std::to_string(i).c_str(), i));
      fill(lease, 100 << 10);
    }
  }
  auto left = [&] {
    std::string ids;
    for (const SessionRecord& each : store.list("ada")) ids += each.id;
    return ids;
  };
  CHECK(store.sweep(0, 1 << 30) == 0);
  CHECK(left() == "4321");
  CHECK(store.sweep(2, 1 << 30) == 1);
  CHECK(left() == "432");
  CHECK(store.sweep(0, 250 << 10) == 1);
  CHECK(left() == "43");
  SUBCASE("those in use stay, and do not count") {
    auto held = store.open("ada", "3");
    CHECK(store.sweep(0, 150 << 10) == 0);
    CHECK(store.sweep(100, 0) == 1);
    CHECK(left() == "3");
  }
}

TEST_CASE("a sweep deletes leftovers without a record, but not one that is just being made") {
  Directory directory;
  SessionStore store(directory.path);
  store.create(record("sound", 1000));
  fs::create_directories(directory.path / "sessions" / "leftover" / "workspace");
  CHECK(store.sweep(0, 0) == 1);  // only what has a record counts for the cap
  CHECK(fs::exists(directory.path / "sessions" / "leftover"));
  CHECK(store.sweep(time(nullptr) + 10, 1 << 30) == 1);
  CHECK(!fs::exists(directory.path / "sessions" / "leftover"));
}

TEST_CASE("a workspace is deleted whatever its code did to the permissions") {
  Directory directory;
  AsOrdinaryUser ordinary(directory.path);
  SessionStore store(directory.path / "state");
  SessionLease lease = store.create(record("one"));
  fs::create_directories(lease.workspace() / "a" / "b");
  fill(lease, 10);
  std::ofstream(lease.workspace() / "a" / "b" / "c") << "x";
  fs::create_symlink("/etc", lease.workspace() / "link");
  for (const char* path : {"a/b", "a", "."})
    REQUIRE(chmod((lease.workspace() / path).c_str(), 0) == 0);
  store.remove(lease);
  CHECK(!fs::exists(lease.directory));
  CHECK(fs::exists("/etc/passwd"));
}
