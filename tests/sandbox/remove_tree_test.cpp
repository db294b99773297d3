#include "sandbox/remove_tree.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace fs = std::filesystem;

namespace {

fs::path scratch() {
  std::string name = fs::temp_directory_path() / "remove-tree-XXXXXX";
  REQUIRE(mkdtemp(name.data()));
  return name;
}

// Deeper than a path can be long.
void dig(const fs::path& top, int levels) {
  int fd = open(top.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (int i = 0; i < levels; ++i) {
    REQUIRE(mkdirat(fd, "d", 0700) == 0);
    int next = openat(fd, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(fd);
    fd = next;
  }
  close(openat(fd, "file", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  close(fd);
}

}  // namespace

TEST_CASE("a tree that is nested deeper than a process has descriptors goes") {
  fs::path top = scratch();
  dig(top, 3000);
  CHECK(sandbox::remove_tree(top));
  CHECK_FALSE(fs::exists(top));
}

TEST_CASE("files, links and directories without permissions go; what links lead to stays") {
  fs::path outside = scratch(), top = scratch();
  std::ofstream(outside / "kept") << "kept";
  fs::create_directories(top / "shut" / "below" / "deeper");
  std::ofstream(top / "shut" / "below" / "file") << "x";
  fs::create_directory_symlink(outside, top / "link");
  fs::create_directory_symlink(outside, top / "shut" / "below" / "link");
  REQUIRE(mkfifo((top / "pipe").c_str(), 0600) == 0);
  fs::permissions(top / "shut" / "below", fs::perms::none);
  fs::permissions(top / "shut", fs::perms::none);

  CHECK(sandbox::remove_tree(top));
  CHECK_FALSE(fs::exists(top));
  CHECK(fs::exists(outside / "kept"));
  CHECK(sandbox::remove_tree(outside));
}

TEST_CASE("a directory that is not there is gone; a link is not a directory") {
  fs::path top = scratch();
  CHECK(sandbox::remove_tree(top / "absent"));
  fs::create_directory_symlink(top, top / "link");
  CHECK_FALSE(sandbox::remove_tree(top / "link"));
  CHECK(sandbox::remove_tree(top));
}
