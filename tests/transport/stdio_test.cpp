#include "transport/stdio.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>

#include "tests/transport/conversation.hpp"

using Limit = Conversation::Limit;

namespace {

// So long that nothing which waits for it ends in time.
transport::StdioLimits with_long_grace() {
  transport::StdioLimits limits;
  limits.grace = Limit(60000);
  return limits;
}

constexpr Limit kSoon(20000);  // on a busy machine

bool says(const std::optional<std::string>& line, std::string_view what) {
  return line && line->find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("a message may arrive in pieces of any size") {
  Conversation conversation;
  for (char byte : ping(1) + "\n" + ping(2) + "\n") conversation.write(std::string(1, byte));
  CHECK(conversation.receive() == pong(1));
  CHECK(conversation.receive() == pong(2));
}

TEST_CASE("what is between messages does not matter") {
  struct Row {
    const char* name;
    std::string bytes;
  };
  for (const Row& row :
       {Row{"CR LF", ping(1) + "\r\n"}, Row{"blank lines", "\n\r\n  \n" + ping(1) + "\n"},
        Row{"blanks around", "  \t" + ping(1) + " \n"},
        Row{"byte order mark", "\xEF\xBB\xBF" + ping(1) + "\n"}}) {
    CAPTURE(row.name);
    Conversation conversation;
    conversation.write(row.bytes);
    CHECK(conversation.receive() == pong(1));
  }
}

TEST_CASE("only a newline ends a message: U+2028 is text") {
  Conversation conversation;
  conversation.send(call(1, "echo", "{\"text\":\"a\u2028b\u2029c\u0085d\"}"));
  CHECK(says(conversation.receive(), "a\u2028b\u2029c\u0085d"));
}

TEST_CASE("what is not JSON is refused without an id, and the next message is served") {
  struct Row {
    const char* name;
    std::string line;
  };
  for (const Row& row :
       {Row{"words", "not json"}, Row{"half an object", R"({"jsonrpc":"2.0","id":1,)"},
        Row{"two on a line", ping(1) + ping(2)}, Row{"invalid UTF-8", "{\"a\":\"\xff\xfe\"}"},
        Row{"NUL", std::string("\0\0", 2)}, Row{"too deep", std::string(100000, '[')},
        Row{"just too deep", std::string(65, '[') + std::string(65, ']')},
        Row{"a control character in a string", "\"\x01\""}}) {
    CAPTURE(row.name);
    Conversation conversation;
    conversation.send(row.line);
    auto refused = conversation.receive();
    CHECK(says(refused, "-32700"));
    CHECK_FALSE(says(refused, "\"id\""));
    conversation.send(ping(3));
    CHECK(conversation.receive() == pong(3));
  }
}

TEST_CASE("a lone surrogate does not cost the client its answer") {
  Conversation conversation;
  conversation.send(call(1, "echo", R"({"text":"a\ud800b"})"));
  auto reply = conversation.receive();
  CHECK(says(reply, "\"id\":1"));
  CHECK(says(reply, "a\uFFFDb"));
}

TEST_CASE("requests that are answered at once are never too many") {
  Conversation conversation;
  constexpr int kRequests = 2000;
  std::string all;
  for (int id = 0; id < kRequests; ++id) all += ping(id) + "\n";
  CHECK(conversation.write(all) == all.size());
  for (int id = 0; id < kRequests; ++id) REQUIRE(conversation.receive() == pong(id));
}

TEST_CASE("the end of the input ends the service, and what is done waits for no grace") {
  Conversation conversation(with_long_grace());
  SUBCASE("with nothing to do, at once") {
    conversation.close_input();
    CHECK(conversation.ends_within(kSoon));
  }
  SUBCASE("what can be answered soon still is") {
    conversation.send(call(1, "slow", R"({"ms":300})"));
    conversation.close_input();
    CHECK(says(conversation.receive(), "waited 300 ms"));
    CHECK(conversation.ends_within(kSoon));
  }
  SUBCASE("a last message without its newline is served") {
    conversation.write(ping(1));
    conversation.close_input();
    CHECK(conversation.receive() == pong(1));
    CHECK(conversation.ends_within(kSoon));
  }
  SUBCASE("a message that was cut off is not") {
    conversation.write(ping(1).substr(0, 20));
    conversation.close_input();
    CHECK(conversation.ends_within(kSoon));
    CHECK_FALSE(conversation.receive(Limit(50)));
  }
}

TEST_CASE("what cannot be answered when the input ends is cancelled, within two seconds in all") {
  CHECK(transport::StdioLimits().grace < Limit(1500));
  Conversation conversation;
  SUBCASE("a call that takes long") {
    conversation.send(call(1, "slow", R"({"ms":60000})"));
    conversation.close_input();
    CHECK(conversation.ends_within(kSoon));
    CHECK_FALSE(conversation.receive(Limit(50)));
  }
  SUBCASE("also when the client does not read") {
    for (int id = 0; id < 40; ++id) conversation.send(call(id, "flood", R"({"bytes":500000})"));
    conversation.close_input();
    CHECK(conversation.ends_within(kSoon));
  }
}

TEST_CASE("a client that no longer listens ends the service") {
  Conversation conversation(with_long_grace());
  conversation.send(call(1, "slow", R"({"ms":60000})"));
  conversation.stop_reading();
  conversation.send(ping(2));
  CHECK(conversation.ends_within(kSoon));
}

TEST_CASE("a signal ends the service as the end of the input does") {
  transport::StdioLimits limits;
  limits.grace = Limit(4000);
  Conversation conversation(limits);
  conversation.send(call(1, "slow", R"({"ms":300})"));
  conversation.send(call(2, "slow", R"({"ms":60000})"));
  conversation.send(ping(3));
  CHECK(conversation.receive() == pong(3));
  conversation.cancel();
  CHECK(says(conversation.receive(), "waited 300 ms"));
  CHECK(conversation.ends_within(kSoon));
}

TEST_CASE("the descriptors are given back as they were") {
  Conversation conversation(with_long_grace());
  conversation.send(ping(1));
  CHECK(conversation.receive() == pong(1));
  CHECK((fcntl(conversation.server_input(), F_GETFL) & O_NONBLOCK) != 0);
  conversation.close_input();
  CHECK(conversation.ends_within(kSoon));
  CHECK((fcntl(conversation.server_input(), F_GETFL) & O_NONBLOCK) == 0);
}

TEST_CASE("regular files and /dev/null will do, although epoll refuses them") {
  char directory[] = "/tmp/pykeep-stdio-XXXXXX";
  REQUIRE(mkdtemp(directory));
  std::string in_name = std::string(directory) + "/in", out_name = std::string(directory) + "/out";
  std::ofstream(in_name) << ping(1) << "\n" << call(2, "echo", R"({"text":"filed"})");
  struct Row {
    const char* in;
    const char* out;
    const char* last_line;
  };
  for (const Row& row :
       {Row{in_name.c_str(), out_name.c_str(), "filed"}, Row{"/dev/null", out_name.c_str(), ""},
        Row{in_name.c_str(), "/dev/null", ""}}) {
    CAPTURE(row.in);
    CAPTURE(row.out);
    boost::asio::io_context io(1);
    mcp::Server server = fixture_server();
    async::TaskGroup tasks(io.get_executor());
    int in = open(row.in, O_RDONLY | O_CLOEXEC);
    int out = open(row.out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    tasks.spawn(transport::serve_stdio(server, in, out));
    io.run_for(kSoon);
    CHECK(io.stopped());
    close(in);
    close(out);
    std::string line, last;
    for (std::ifstream written(row.out); std::getline(written, line);) last = line;
    CHECK(last.find(row.last_line) != std::string::npos);
  }
  unlink(in_name.c_str());
  unlink(out_name.c_str());
  rmdir(directory);
}

TEST_CASE("a standard stream that is closed is reported, not served") {
  boost::asio::io_context io(1);
  mcp::Server server = fixture_server();
  std::exception_ptr failure;
  async::TaskGroup tasks(io.get_executor(), [&](std::exception_ptr problem) { failure = problem; });
  tasks.spawn(transport::serve_stdio(server, 999, 1));
  io.run_for(kSoon);
  REQUIRE(failure);
  CHECK_THROWS_AS(std::rethrow_exception(failure), std::system_error);
}
