#include "transport/http/peer_store.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>

#include "tests/support/scratch.hpp"

namespace http = transport::http;
namespace fs = std::filesystem;

namespace {

struct Directory {
  fs::path file() const { return path / "mcp-sessions.json"; }
  testing::Scratch scratch;
  fs::path path = scratch.path / "http";
};

http::StoredPeer peer(std::string id, std::chrono::seconds used = std::chrono::seconds(5)) {
  http::StoredPeer peer;
  peer.id = std::move(id);
  peer.principal = "anna";
  peer.revision = mcp::Revision::v2025_06_18;
  peer.capabilities["elicitation"].emplace_object();
  peer.used = used;
  return peer;
}

void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("what was saved is there again, for its user alone") {
  Directory directory;
  {
    http::PeerStore store(directory.path);
    REQUIRE(store.usable());
    CHECK(store.load().empty());
    CHECK(store.save({peer("a"), peer("b")}) == "");
    CHECK(store.save({peer("b"), peer("c")}) == "");
  }
  auto peers = http::PeerStore(directory.path).load();
  REQUIRE(peers.size() == 2);
  CHECK(peers[0].id == "b");
  CHECK(peers[1].id == "c");
  CHECK(peers[0].principal == "anna");
  CHECK(peers[0].revision == mcp::Revision::v2025_06_18);
  CHECK(peers[0].capabilities.contains("elicitation"));
  CHECK(peers[0].used == std::chrono::seconds(5));
  struct stat info;
  stat(directory.path.c_str(), &info);
  CHECK((info.st_mode & 0777) == 0700);
  stat(directory.file().c_str(), &info);
  CHECK((info.st_mode & 0777) == 0600);
}

TEST_CASE("two processes do not share a store, and a directory open to others is none") {
  Directory directory;
  {
    http::PeerStore first(directory.path);
    http::PeerStore second(directory.path);
    CHECK_FALSE(second.usable());
    CHECK(second.why().find("another server") != std::string::npos);
    CHECK(second.load().empty());
  }
  fs::permissions(directory.path, fs::perms(0755));
  CHECK_FALSE(http::PeerStore(directory.path).usable());
  CHECK_FALSE(http::PeerStore("").usable());
}

TEST_CASE("a damaged file holds what is sound of it") {
  Directory directory;
  http::PeerStore store(directory.path);
  const std::string sound =
      R"({"id":"a","principal":"p","revision":"2025-11-25","capabilities":{},"used":9223372036854775807})";
  struct Row {
    const char* name;
    std::string text;
    std::size_t peers;
  };
  for (const Row& row :
       {Row{"sound", "[" + sound + "]", 1}, Row{"cut off", "[" + sound, 0}, Row{"empty", "", 0},
        Row{"an object", sound, 0}, Row{"one of two", "[1," + sound + "]", 1},
        Row{"no id", R"([{"principal":"p","revision":"2025-11-25","capabilities":{},"used":1}])",
            0},
        Row{"a modern revision",
            R"([{"id":"a","principal":"p","revision":"2026-07-28","capabilities":{},"used":1}])",
            0},
        Row{"deep", std::string(10'000, '['), 0}}) {
    CAPTURE(row.name);
    write(directory.file(), row.text);
    CHECK(store.load().size() == row.peers);
  }
}

TEST_CASE("the file is bounded: the oldest are left out") {
  Directory directory;
  http::PeerStore store(directory.path);
  std::vector<http::StoredPeer> peers;
  for (int i = 0; i < 300; ++i) {
    peers.push_back(peer("peer-" + std::to_string(i)));
    peers.back().capabilities["x"] = std::string(100'000, 'x');
  }
  CHECK(store.save(peers) == "");
  CHECK(fs::file_size(directory.file()) < (17u << 20));
  auto loaded = store.load();
  CHECK(loaded.size() < 300);
  CHECK(loaded.back().id == "peer-299");
}
