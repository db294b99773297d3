#include "sandbox/tree_size.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "sandbox/remove_tree.hpp"

namespace fs = std::filesystem;
using sandbox::tree_size;

namespace {

constexpr std::uint64_t kEnough = std::uint64_t{1} << 30;
constexpr std::uint64_t kMiB = 1 << 20;

struct Tree {
  Tree() {
    std::string name = (fs::temp_directory_path() / "tree-XXXXXX").string();
    path = mkdtemp(name.data());
    fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  ~Tree() {
    close(fd);
    sandbox::remove_tree(path);
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  void write(const std::string& name, std::size_t size) const {
    std::ofstream(path / name) << std::string(size, 'x');
  }
  std::uint64_t size(std::uint64_t enough = kEnough) const { return tree_size(fd, enough); }

  fs::path path;
  int fd;
};

// Nested directories, a file of `size` bytes in the innermost, and one beside each directory on the
// way, which is met only on the way back.
void nest(int top, int levels, std::size_t size) {
  int at = dup(top);
  for (int level = 0; level < levels; ++level) {
    REQUIRE(mkdirat(at, "d", 0700) == 0);
    close(openat(at, "beside", O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    int below = openat(at, "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    close(at);
    at = below;
  }
  int file = openat(at, "file", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  std::string bytes(size, 'x');
  CHECK(write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(size));
  close(file);
  close(at);
}

}  // namespace

TEST_CASE("the size of a tree counts what is there, once, and no further than asked") {
  Tree tree;
  CHECK(tree.size() == 0);
  tree.write("big", kMiB);
  fs::create_directory(tree.path / "a");
  tree.write("a/empty", 0);
  fs::create_hard_link(tree.path / "big", tree.path / "a" / "again");
  fs::create_symlink("/usr", tree.path / "link");
  CHECK(tree.size() >= kMiB + 3 * 4096);
  CHECK(tree.size() < kMiB + 64 * 1024);
  CHECK(tree.size(5000) == 5000);
}

TEST_CASE("nothing hides below more levels than are kept open, and nothing is made up") {
  constexpr int kLevels = 300;
  Tree tree;
  nest(tree.fd, kLevels, kMiB);
  CHECK(tree.size() >= kMiB + 2 * kLevels * 4096);
  CHECK(tree.size() < 2 * kMiB + 2 * kLevels * 4096 + kLevels * 4096);
}

TEST_CASE("what cannot be opened is left out") {
  Tree tree;
  tree.write("file", kMiB);
  CHECK(tree_size(-1, kEnough) == 0);
  CHECK(tree.size() >= kMiB);
}
