#include "sandbox/copy_tree.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/scratch.hpp"

using sandbox::copy_tree;
using sandbox::CopyError;
namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kPlenty = 1ull << 40;

struct Directories {
  Directories() {
    fs::create_directory(from);
    fs::create_directory(to);
  }
  testing::Scratch scratch;
  fs::path top = scratch.path, from = top / "from", to = top / "to";
};

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace

TEST_CASE("files, directories and links are copied as they are") {
  Directories d;
  fs::create_directories(d.from / "a" / "b");
  std::ofstream(d.from / "a" / "b" / "file") << "content";
  chmod((d.from / "a" / "b" / "file").c_str(), 0640);
  timespec times[] = {{1, 0}, {1'000'000, 5}};
  utimensat(AT_FDCWD, (d.from / "a" / "b" / "file").c_str(), times, 0);
  fs::create_symlink("/etc/passwd", d.from / "link");
  fs::create_symlink("nowhere", d.from / "broken");
  std::ofstream(d.from / "\xff\xfe") << "a name need not be UTF-8";
  auto report = copy_tree(d.from, d.to, kPlenty);
  CHECK(report.skipped.empty());
  CHECK(read(d.to / "a" / "b" / "file") == "content");
  struct stat info {};
  REQUIRE(stat((d.to / "a" / "b" / "file").c_str(), &info) == 0);
  CHECK((info.st_mode & 07777) == 0640);
  CHECK(info.st_mtim.tv_sec == 1'000'000);
  CHECK(fs::read_symlink(d.to / "link") == "/etc/passwd");
  CHECK(fs::read_symlink(d.to / "broken") == "nowhere");
  CHECK(fs::exists(d.to / "\xff\xfe"));
}

TEST_CASE("what is no file is skipped and named, also beyond the names that fit") {
  Directories d;
  REQUIRE(mkfifo((d.from / "pipe").c_str(), 0600) == 0);
  auto report = copy_tree(d.from, d.to, kPlenty);
  REQUIRE(report.skipped.size() == 1);
  CHECK(report.skipped[0] == "pipe: not a file");
  for (int i = 0; i < 30; ++i) REQUIRE(mkfifo((d.from / std::to_string(i)).c_str(), 0600) == 0);
  fs::remove_all(d.to);
  fs::create_directory(d.to);
  report = copy_tree(d.from, d.to, kPlenty);
  CHECK(report.skipped.size() == 11);
  CHECK(report.skipped.back() == "21 more");
  CHECK(fs::is_empty(d.to));
}

TEST_CASE("a tree that is nested too deeply is cut, and costs no descriptors without end") {
  Directories d;
  fs::path deep = d.from;
  for (int i = 0; i < 150; ++i) fs::create_directory(deep /= "d");
  auto report = copy_tree(d.from, d.to, kPlenty);
  REQUIRE(report.skipped.size() == 1);
  CHECK(report.skipped[0].find("nested too deeply") != std::string::npos);
}

TEST_CASE("holes stay holes, and do not count") {
  Directories d;
  int fd = open((d.from / "sparse").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  REQUIRE(ftruncate(fd, 1 << 30) == 0);
  REQUIRE(pwrite(fd, "end", 3, (1 << 30) - 3) == 3);
  close(fd);
  auto report = copy_tree(d.from, d.to, 1 << 20);
  CHECK(report.bytes < 1 << 20);
  struct stat info {};
  REQUIRE(stat((d.to / "sparse").c_str(), &info) == 0);
  CHECK(info.st_size == 1 << 30);
  CHECK(info.st_blocks * 512 < 1 << 20);
  fd = open((d.to / "sparse").c_str(), O_RDONLY | O_CLOEXEC);
  char end[3];
  REQUIRE(pread(fd, end, 3, (1 << 30) - 3) == 3);
  CHECK(std::string(end, 3) == "end");
  close(fd);
}

TEST_CASE("there is a limit, for bytes and for empty files alike") {
  Directories d;
  SUBCASE("bytes") { std::ofstream(d.from / "file") << std::string(100'000, 'x'); }
  SUBCASE("files") {
    for (int i = 0; i < 20; ++i) std::ofstream(d.from / std::to_string(i));
  }
  CHECK_THROWS_AS(copy_tree(d.from, d.to, 50'000), CopyError);
}

TEST_CASE("everything belongs to the owner of the directory it goes to") {
  if (geteuid() != 0) {
    MESSAGE("skipped: only root can give files away");
    return;
  }
  Directories d;
  fs::create_directory(d.from / "a");
  std::ofstream(d.from / "a" / "file") << "x";
  fs::create_symlink("file", d.from / "a" / "link");
  REQUIRE(chown(d.to.c_str(), 12345, 12345) == 0);
  copy_tree(d.from, d.to, kPlenty);
  for (const char* path : {"a", "a/file", "a/link"}) {
    CAPTURE(path);
    struct stat info {};
    REQUIRE(lstat((d.to / path).c_str(), &info) == 0);
    CHECK(info.st_uid == 12345);
  }
}
