#include "sandbox/pandastack/house.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "sandbox/pandastack/repl_channel.hpp"
#include "tests/support/scratch.hpp"

namespace sandbox::pandastack {
namespace {

namespace fs = std::filesystem;

TEST_CASE("what fails there is said so that the reader can go on") {
  struct Row {
    int status;
    const char* said;
    const char* text;
  };
  for (const Row& row : {
           Row{401, "unauthorized", "does not accept the key (unauthorized)"},
           Row{402, "paid plans only", "plan does not include this: paid plans only"},
           Row{403, "template not accessible", "does not allow this: template not accessible"},
           Row{429, "5 sandboxes at once",
               "takes no more at the moment (5 sandboxes at once): try again in 7 s"},
           Row{507, "insufficient host memory",
               "has no room at the moment (insufficient host memory)"},
       }) {
    CAPTURE(row.status);
    Error failure(Failure::answered, Outcome::refused, "the call failed");
    failure.status = row.status;
    failure.message = row.said;
    failure.retry_after = std::chrono::seconds(7);
    CHECK(readable(failure).find(row.text) != std::string::npos);
  }
}

TEST_CASE("records are read as they were written, and nothing else is one") {
  ::testing::Scratch scratch;
  REQUIRE(read_session_vm(scratch.path));
  CHECK_FALSE(read_session_vm(scratch.path)->vm);
  SessionVm record;
  record.vm.emplace();
  record.vm->id = "3f0c";
  record.vm->secret = random_hex(32);
  record.tag = "t";
  write_session_vm(scratch.path, record);
  auto read = read_session_vm(scratch.path);
  REQUIRE(read);
  REQUIRE(read->vm);
  CHECK(read->vm->id == "3f0c");
  CHECK(read->vm->secret == record.vm->secret);
  CHECK(read->tag == "t");
  for (const char* text : {"", "{", "[]", R"({"version":2})", R"({"version":1,"vm":{"id":3}})"}) {
    std::ofstream(scratch.path / "sandbox.json") << text;
    CHECK_FALSE(read_session_vm(scratch.path));  // not "none": its microVM is not nobody's
  }
}

TEST_CASE("a microVM that snapshots were made of is known") {
  ::testing::Scratch scratch;
  fs::create_directories(scratch.path / "snapshots" / "one");
  fs::create_directories(scratch.path / "snapshots" / "two");
  Image image;
  image.vm.id = "source";
  image.snapshot = "s";
  write_image(scratch.path / "snapshots" / "one" / "image", image);
  image.vm.id = "asleep";
  image.snapshot.clear();
  write_image(scratch.path / "snapshots" / "two" / "image", image);
  CHECK(sources_of_snapshots(scratch.path) == std::set<std::string>{"source"});
  CHECK(read_image(scratch.path / "snapshots" / "one" / "image")->snapshot == "s");
  CHECK(owner_of(scratch.path) == owner_of(scratch.path));
}

TEST_CASE("a cell of the vendor's own kernel is ASCII") {
  CHECK(repl_cell("x + 1") == "x + 1");
  std::string cell = repl_cell("print('gr\u00fc\u00dfe')");
  for (unsigned char c : cell) CHECK(c < 0x80);
  CHECK(cell.find("'S'") == std::string::npos);
}

}  // namespace
}  // namespace sandbox::pandastack
