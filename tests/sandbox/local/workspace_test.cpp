#include "sandbox/local/workspace.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <thread>

#include "sandbox/local/beneath.hpp"
#include "sandbox/local/ids.hpp"
#include "tests/sandbox/local/sandboxes.hpp"

using namespace sandbox;
using namespace sandbox::local;
using namespace sandbox::local::testing;

namespace {

namespace fs = std::filesystem;

struct Workspace {
  Scratch scratch;
  boost::asio::thread_pool pool{1};
  WorkspaceFiles files{scratch.path, pool};
  fs::path path(const std::string& name) const { return scratch.path / name; }
};

template <class T>
T run(awaitable<T> work) {
  boost::asio::io_context context;
  auto result = boost::asio::co_spawn(context, std::move(work), boost::asio::use_future);
  context.run();
  return result.get();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

template <class T>
std::string refusal(awaitable<T> work) {
  try {
    run(std::move(work));
  } catch (const FileError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a path in the workspace is taken as it is meant, and no other") {
  struct Row {
    std::string in;
    std::string out;  // or, after "!", a part of the refusal
  };
  for (const Row& row :
       {Row{"a.csv", "a.csv"}, Row{"/workspace/a.csv", "a.csv"}, Row{"/workspace", "."},
        Row{"", "."}, Row{"./a//b/", "a/b"}, Row{"-rf", "-rf"}, Row{"\xff\n", "\xff\n"},
        Row{std::string(255, 'n'), std::string(255, 'n')}, Row{std::string(256, 'n'), "!255 bytes"},
        Row{"../../etc/passwd", "!\"..\" is not allowed"}, Row{"a/../b", "!\"..\" is not allowed"},
        Row{"/etc/passwd", "!only paths below /workspace"},
        Row{"/workspaces/x", "!only paths below /workspace"},
        Row{std::string("a\0b", 3), "!NUL"}}) {
    CAPTURE(row.in);
    std::string result;
    try {
      result = workspace_path(row.in);
    } catch (const FileError& error) {
      result = error.what();
      CHECK(row.out.starts_with("!"));
      CHECK(result.find(row.out.substr(1)) != std::string::npos);
      continue;
    }
    CHECK(result == row.out);
  }
}

TEST_CASE("files are written whole, with their directories, and read in pieces") {
  Workspace workspace;
  FileInfo info = run(workspace.files.write("data/in/a.txt", "0123456789"));
  CHECK(info.path == "data/in/a.txt");
  CHECK(info.size == 10);
  CHECK(run(workspace.files.read("/workspace/data/in/a.txt", 3, 4)) == "3456");
  CHECK(run(workspace.files.read("data/in/a.txt", 8, 100)) == "89");
  CHECK(run(workspace.files.read("data/in/a.txt", 11, 100)).empty());
  run(workspace.files.write("data/in/a.txt", "new"));
  CHECK(run(workspace.files.read("data/in/a.txt", 0, 100)) == "new");
  Listing listing = run(workspace.files.list("", 3, 100));
  REQUIRE(listing.entries.size() == 3);
  CHECK(listing.entries[2].path == "data/in/a.txt");
  CHECK(listing.complete);
  Listing cut = run(workspace.files.list("", 3, 2));
  CHECK(cut.entries.size() == 2);
  CHECK(!cut.complete);
}

TEST_CASE("a root server's files belong to the sandbox's user") {
  if (geteuid() != 0) return;
  Workspace workspace;
  run(workspace.files.write("d/a", "x"));
  struct stat directory {
  }, below{}, file{};
  REQUIRE(stat(workspace.scratch.path.c_str(), &directory) == 0);
  REQUIRE(stat(workspace.path("d").c_str(), &below) == 0);
  REQUIRE(stat(workspace.path("d/a").c_str(), &file) == 0);
  CHECK(directory.st_uid >= kFirstId);
  CHECK(below.st_uid == directory.st_uid);
  CHECK(file.st_uid == directory.st_uid);
}

TEST_CASE("links are listed and never followed; pipes do not block") {
  Workspace workspace;
  Scratch host;
  std::ofstream(host.path / "secret") << "canary";
  fs::create_symlink(host.path, workspace.path("dir"));
  fs::create_symlink(host.path / "secret", workspace.path("file"));
  REQUIRE(mkfifo(workspace.path("pipe").c_str(), 0666) == 0);
  for (const std::string path : {"file", "dir/secret"}) {
    CAPTURE(path);
    CHECK(refusal(workspace.files.read(path, 0, 10)).find("symbolic link") != std::string::npos);
    CHECK(refusal(workspace.files.write(path, "x")).find("symbolic link") != std::string::npos);
  }
  CHECK(refusal(workspace.files.write("dir/new", "x")).find("symbolic link") != std::string::npos);
  CHECK(refusal(workspace.files.list("dir", 1, 10)) != "");
  CHECK(refusal(workspace.files.read("pipe", 0, 10)).find("regular file") != std::string::npos);
  CHECK(refusal(workspace.files.read("gone", 0, 10)).find("no such file") != std::string::npos);
  CHECK(contents_of(host.path / "secret") == "canary");
  CHECK(run(workspace.files.stat("file")).is_link);
  CHECK(run(workspace.files.list("", 5, 10)).entries.size() == 3);
}

TEST_CASE("swapping a directory for a link 10,000 times never leads outside") {
  Workspace workspace;
  Scratch host;
  std::ofstream(host.path / "f") << "canary";
  fs::create_directory(workspace.path("real"));
  std::ofstream(workspace.path("real/f")) << "inside";
  fs::create_symlink(host.path, workspace.path("swap"));
  std::atomic<bool> done = false;
  std::thread attacker([&] {
    std::string a = workspace.path("real"), b = workspace.path("swap");
    while (!done) renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE);
  });
  Fd root(open(workspace.scratch.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int inside = 0, refused = 0, outside = 0;
  for (int attempt = 0; attempt < 10000; ++attempt) try {
      Fd file = open_beneath(root.get(), "swap/f", O_RDONLY);
      char text[16] = {};
      (void)!read(file.get(), text, sizeof text - 1);
      std::string_view(text) == "inside" ? ++inside : ++outside;
    } catch (const FileError&) {
      ++refused;
    }
  done = true;
  attacker.join();
  CHECK(outside == 0);
  CHECK(inside + refused == 10000);
}

TEST_CASE("an upload past its cap leaves the old file and nothing else") {
  Workspace workspace;
  run(workspace.files.write("a", "old"));
  Scratch host;
  std::ofstream(host.path / "big") << std::string(3 << 20, 'x');
  Fd big(open((host.path / "big").c_str(), O_RDONLY | O_CLOEXEC));
  CHECK(refusal(workspace.files.copy_in("a", big.get(), 2 << 20)).find("limit") !=
        std::string::npos);
  CHECK(run(workspace.files.read("a", 0, 10)) == "old");
  CHECK(std::distance(fs::directory_iterator(workspace.scratch.path), {}) == 1);
  CHECK(run(workspace.files.copy_in("a", big.get(), 4 << 20)).size == 3u << 20);
}

TEST_CASE("a full disk is said to be full, and the old file is still there") {
  Scratch scratch;
  if (mount("tmpfs", scratch.path.c_str(), "tmpfs", 0, "size=256k") != 0) {
    MESSAGE("skipped: only root can mount a small file system");
    return;
  }
  {
    boost::asio::thread_pool pool(1);
    WorkspaceFiles files(scratch.path, pool);
    run(files.write("a", "old"));
    std::string problem = refusal(files.write("a", std::string(1 << 20, 'x')));
    CHECK(problem.find("disk is full") != std::string::npos);
    CHECK(run(files.read("a", 0, 10)) == "old");
    CHECK(run(files.list("", 1, 10)).entries.size() == 1);
  }
  umount2(scratch.path.c_str(), MNT_DETACH);
}

TEST_CASE("a file is written in parts, and is there once it is whole") {
  Workspace workspace;
  run(workspace.files.write("data/in.bin", "old"));
  {
    auto dropped = run(workspace.files.create("data/in.bin"));
    run(dropped->write("half"));
    CHECK(run(workspace.files.read("data/in.bin", 0, 100)) == "old");
  }
  auto writer = run(workspace.files.create("data/in.bin"));
  run(writer->write("one "));
  run(writer->write("two"));
  CHECK(run(workspace.files.list("data", 1, 10)).entries.size() == 1);
  CHECK(run(writer->finish()).size == 7);
  CHECK(run(workspace.files.read("data/in.bin", 0, 100)) == "one two");
  CHECK(contains(refusal(workspace.files.create("data")), "it is a directory"));
  CHECK(contains(refusal(workspace.files.create("../x")), "not allowed"));

  auto late = run(workspace.files.create("gone.bin"));
  fs::remove_all(workspace.scratch.path);
  CHECK(contains(refusal(late->finish()), "gone.bin"));
}

TEST_CASE("an open file stays what it was when another is put in its place") {
  Workspace workspace;
  run(workspace.files.write("x", "first"));
  auto reader = run(workspace.files.open("x"));
  run(workspace.files.write("x", "second"));
  CHECK(reader->info().size == 5);
  CHECK(run(reader->read(1, 3)) == "irs");
  CHECK(run(reader->read(5, 3)).empty());
  CHECK(run(workspace.files.open("x"))->version() != reader->version());
  CHECK(run(workspace.files.open("x"))->version() == run(workspace.files.open("x"))->version());
  CHECK(run(workspace.files.used(1 << 20)) > 0);
  mkfifo(workspace.path("pipe").c_str(), 0600);
  CHECK(contains(refusal(workspace.files.open("pipe")), "not a regular file"));
}
