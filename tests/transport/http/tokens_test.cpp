#include "transport/http/tokens.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/support/scratch.hpp"
#include "transport/http/authentication.hpp"

using namespace transport::http;

namespace {

constexpr const char* kAlice = "3q2-7wAAbcdEFGhij_klmn";  // 22 characters of base64url
constexpr const char* kBob = "00112233445566778899aabbccddeeff";

struct Directory : testing::Scratch {
  std::filesystem::path write(const std::string& text, mode_t mode = 0600) const {
    std::filesystem::path file = path / "tokens";
    std::ofstream(file) << text;
    chmod(file.c_str(), mode);
    return file;
  }
};

Tokens tokens_of(const std::filesystem::path& file) {
  Tokens tokens;
  tokens.load(file);
  return tokens;
}

Request bearing(const std::string& authorization) {
  Request request;
  request.remote = "192.0.2.7";
  if (!authorization.empty()) request.headers.emplace("Authorization", authorization);
  return request;
}

std::string header_of(const Response& response, const std::string& name) {
  for (const auto& [key, value] : response.headers)
    if (key == name) return value;
  return "";
}

}  // namespace

TEST_CASE("a token file names a principal for each token") {
  Directory directory;
  std::string text = std::string("# ours\r\n\n  alice: ") + kAlice + "\r\nbob\t" + kBob +
                     "\nalice :" + "another-token-of-alice-0123456789";
  Tokens tokens = tokens_of(directory.write(text));
  CHECK(tokens.size() == 3);
  CHECK(tokens.principal(kAlice) == "alice");
  CHECK(tokens.principal("another-token-of-alice-0123456789") == "alice");
  CHECK(tokens.principal(kBob) == "bob");
  CHECK(tokens.principal(std::string(kBob) + "0") == std::nullopt);
  CHECK(tokens.principal("") == std::nullopt);
}

TEST_CASE("a token file that is wrong says where, and repeats nothing of a token") {
  std::string alice = std::string("alice: ") + kAlice + "\n";
  struct Row {
    std::string text;
    const char* problem;
  };
  for (const Row& row : {
           Row{"", "there is no token in it"},
           Row{"# nothing\n", "there is no token in it"},
           Row{alice + kBob + "\n", ":2: expected `principal: token`"},
           Row{alice + "b%b: " + kBob, ":2: expected `principal: token`"},
           Row{alice + ": " + kBob, ":2: expected `principal: token`"},
           Row{"alice: short", ":1: the token is too short for 128 bits"},
           Row{"alice: 00112233445566778899aabbccddee", ":1: the token is too short for 128 bits"},
           Row{"alice: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", ":1: the token is not random"},
           Row{"alice: two words-of-0123456789abcdefghijk", ":1: a token is made of"},
           Row{"alice: \"quoted-0123456789abcdefghijk\"", ":1: a token is made of"},
           Row{"alice: " + std::string(513, 'x'), ":1: the token is longer than 512"},
           Row{std::string(65, 'p') + ": " + kBob, ":1: the principal is longer than 64"},
           Row{alice + "bob: " + kAlice, ":2: the same token was given to another principal"},
           Row{std::string(2 << 20, '#'), "larger than 1 MiB"},
       }) {
    CAPTURE(row.problem);
    Directory directory;
    std::string said;
    try {
      tokens_of(directory.write(row.text));
    } catch (const std::runtime_error& problem) {
      said = problem.what();
    }
    CHECK(said.find(row.problem) != said.npos);
    CHECK(said.find(kAlice) == said.npos);
    CHECK(said.find(kBob) == said.npos);
    CHECK(said.find("quoted") == said.npos);
  }
}

TEST_CASE("a token file that others may write is refused, one they may read is not") {
  Directory directory;
  std::string text = std::string("alice: ") + kAlice;
  CHECK_THROWS_AS(tokens_of(directory.write(text, 0620)), std::runtime_error);
  CHECK_THROWS_AS(tokens_of(directory.write(text, 0602)), std::runtime_error);
  CHECK(tokens_of(directory.write(text, 0644)).size() == 1);
  CHECK_THROWS_WITH(tokens_of("/nowhere/tokens"), "/nowhere/tokens: No such file or directory");
}

TEST_CASE("a pipe is read as a file is, and one that nobody writes to is not waited for") {
  Directory directory;
  std::filesystem::path pipe = directory.path / "pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(tokens_of(pipe), doctest::Contains("there is no token in it"));
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  std::thread writer([end = ends[1]] {  // as in --token-file <(command)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    std::string text = std::string("alice: ") + kAlice;
    CHECK(write(end, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    close(end);
  });
  CHECK(tokens_of("/proc/self/fd/" + std::to_string(ends[0])).size() == 1);
  writer.join();
  close(ends[0]);
}

TEST_CASE("a broken file does not take the tokens away that were read before") {
  Directory directory;
  Tokens tokens = tokens_of(directory.write(std::string("alice: ") + kAlice));
  tokens.add(kBob);
  directory.write("alice: short");
  CHECK_THROWS_AS(tokens.reload(), std::runtime_error);
  CHECK(tokens.principal(kAlice) == "alice");
  directory.write("carol: a-new-token-0123456789-of-hers");
  tokens.reload();
  CHECK(tokens.principal(kAlice) == std::nullopt);
  CHECK(tokens.principal("a-new-token-0123456789-of-hers") == "carol");
  CHECK(tokens.principal(kBob) == "token");
}

TEST_CASE("who asks, by the Authorization header") {
  Tokens tokens;
  tokens.add(kBob);
  std::string good = std::string("Bearer ") + kBob;
  struct Row {
    std::string authorization;
    const char* query;
    int status;  // 0: let in
    const char* challenge;
  };
  const char* anonymous = "Bearer realm=\"pykeep\"";
  const char* malformed = "error=\"invalid_request\"";
  for (const Row& row : {
           Row{good, "", 0, ""},
           Row{std::string("bearer   ") + kBob, "", 0, ""},
           Row{"", "", 401, anonymous},
           Row{"Basic YTpi", "", 401, anonymous},
           Row{"Bearer", "", 400, malformed},
           Row{"Bearer ", "", 400, malformed},
           Row{"Bearer two words", "", 400, malformed},
           Row{"Bearer \"quoted\"", "", 400, malformed},
           Row{"Bearer wrong-but-well-formed", "", 401, "error=\"invalid_token\""},
           Row{good + "x", "", 401, "error=\"invalid_token\""},
           Row{good, "a=1&access_token=x", 400, malformed},
           Row{"", "access_token=00112233445566778899aabbccddeeff", 400, malformed},
       }) {
    CAPTURE(row.authorization);
    Authentication authentication(tokens, nullptr);
    Request request = bearing(row.authorization);
    request.query = row.query;
    auto refusal = authentication.check(request);
    CHECK((refusal ? refusal->status : 0) == row.status);
    CHECK(request.principal == (row.status == 0 ? "token" : ""));
    if (!refusal) continue;
    std::string challenge = header_of(*refusal, "WWW-Authenticate");
    CHECK(challenge.find(row.challenge) != challenge.npos);
    CHECK((challenge + refusal->body).find(kBob) == std::string::npos);
  }
}

TEST_CASE("two Authorization headers are malformed, whatever they hold") {
  Tokens tokens;
  tokens.add(kBob);
  Authentication authentication(tokens, nullptr);
  Request request = bearing(std::string("Bearer ") + kBob);
  request.headers.emplace("authorization", "Bearer another-one");
  CHECK(authentication.check(request)->status == 400);
}

TEST_CASE("an address that fails often is told to wait, but its valid tokens go on") {
  Tokens tokens;
  tokens.add(kBob);
  Authentication authentication(tokens, nullptr);
  int last = 0;
  for (int i = 0; i < 60 && last != 429; ++i) {
    Request guess = bearing("Bearer guess-number-" + std::to_string(i));
    last = authentication.check(guess)->status;
  }
  CHECK(last == 429);
  Request good = bearing(std::string("Bearer ") + kBob);
  CHECK(!authentication.check(good));
  Request elsewhere = bearing("Bearer guess");
  elsewhere.remote = "192.0.2.8";
  CHECK(authentication.check(elsewhere)->status == 401);
}
