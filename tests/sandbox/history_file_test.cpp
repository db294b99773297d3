#include "sandbox/history_file.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "sandbox/session_store.hpp"
#include "tests/support/scratch.hpp"

using Lines = std::vector<std::string>;

TEST_CASE("a history is appended to, read, replaced and copied") {
  testing::Scratch scratch;
  auto file = scratch.path / "history.jsonl", copy = scratch.path / "copy.jsonl";
  CHECK(sandbox::read_history(file).empty());
  CHECK(sandbox::append_history(file, "one") == 4);
  CHECK(sandbox::append_history(file, "two") == 8);
  CHECK(sandbox::read_history(file) == Lines{"one", "two"});
  CHECK(sandbox::copy_history(file, copy) == 8);
  CHECK(sandbox::write_history(file, {"three"}) == 6);
  CHECK(sandbox::read_history(file) == Lines{"three"});
  CHECK(sandbox::read_history(copy) == Lines{"one", "two"});
  CHECK(sandbox::copy_history(scratch.path / "none", copy) == 0);
  CHECK_FALSE(std::filesystem::exists(copy));
}

TEST_CASE("a line that was cut off by a crash is left out") {
  testing::Scratch scratch;
  auto file = scratch.path / "history.jsonl";
  std::ofstream(file) << "one\ntw";
  CHECK(sandbox::read_history(file) == Lines{"one"});
}

TEST_CASE("a history is not written through a link, or where nothing can be") {
  testing::Scratch scratch;
  auto link = scratch.path / "link";
  std::filesystem::create_symlink(scratch.path / "elsewhere", link);
  CHECK_THROWS_AS(sandbox::append_history(link, "one"), sandbox::StoreError);
  CHECK_THROWS_AS(sandbox::append_history(scratch.path / "no" / "file", "one"),
                  sandbox::StoreError);
}
