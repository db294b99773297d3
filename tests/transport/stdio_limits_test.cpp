// What a client may cost, at the limits.

#include <doctest/doctest.h>

#include "tests/transport/conversation.hpp"
#include "transport/stdio.hpp"

using Limit = Conversation::Limit;

TEST_CASE("a line beyond the cap is skipped and refused, however long") {
  Conversation conversation;
  std::string megabyte(std::size_t{1} << 20, 'x');
  conversation.write("{\"text\":\"");
  for (int i = 0; i < 64; ++i) REQUIRE(conversation.write(megabyte) == megabyte.size());
  conversation.write("\"}\n");
  conversation.send(ping(1));
  auto refused = conversation.receive();
  REQUIRE(refused);
  CHECK(refused->find("-32600") != std::string::npos);
  CHECK(refused->find("33554432 bytes") != std::string::npos);
  CHECK(conversation.receive() == pong(1));
}

TEST_CASE("the cap is exact") {
  for (int extra : {0, 1}) {
    CAPTURE(extra);
    transport::StdioLimits limits;
    limits.line_bytes = 4096;
    Conversation conversation(limits);
    std::string blanks(limits.line_bytes - ping(1).size() + extra, ' ');
    conversation.send(ping(1) + blanks);
    auto reply = conversation.receive();
    REQUIRE(reply);
    CHECK((*reply == pong(1)) == (extra == 0));
  }
}

TEST_CASE("a client that does not read is not read from, and loses nothing") {
  transport::StdioLimits limits;
  limits.unread_bytes = 100000;
  Conversation conversation(limits);
  std::string all;
  constexpr int kRequests = 400;
  for (int id = 0; id < kRequests; ++id)
    all += call(id, "echo", R"({"text":")" + std::string(10000, 'x') + R"("})") + "\n";

  std::size_t taken = conversation.write(all, Limit(3000));
  // Two pipes, the outbox, one answer a request in flight and what the reader holds.
  CHECK(taken < 65536 * 3 + limits.unread_bytes + 64 * 10200);
  CHECK(taken > limits.unread_bytes);

  int answered = 0;
  while (taken < all.size() || answered < kRequests) {
    taken += conversation.write(std::string_view(all).substr(taken), Limit(1));
    auto line = conversation.receive();
    REQUIRE(line);
    REQUIRE(line->find("\"result\"") != std::string::npos);
    ++answered;
  }
  CHECK(answered == kRequests);
}

TEST_CASE("requests beyond the cap are refused at once, and a cancellation behind them is seen") {
  transport::StdioLimits limits;
  limits.requests_in_flight = 3;
  Conversation conversation(limits);
  for (int id = 1; id <= 3; ++id) conversation.send(call(id, "slow", R"({"ms":60000})"));
  conversation.send(call(4, "slow", R"({"ms":60000})"));
  auto refused = conversation.receive();
  REQUIRE(refused);
  CHECK(refused->find("\"id\":4") != std::string::npos);
  CHECK(refused->find("-32603") != std::string::npos);

  conversation.send(
      R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}})");
  conversation.send(ping(5));
  CHECK(conversation.receive() == pong(5));  // its place is free, and it was not answered itself
}

TEST_CASE("requests in flight are bounded in bytes too") {
  transport::StdioLimits limits;
  limits.request_bytes_in_flight = 500;
  Conversation conversation(limits);
  std::string padding(250, ' ');
  conversation.send(call(1, "slow", R"({"ms":60000})") + padding);
  conversation.send(ping(2) + padding);
  auto refused = conversation.receive();
  REQUIRE(refused);
  CHECK(refused->find("\"id\":2") != std::string::npos);
  CHECK(refused->find("-32603") != std::string::npos);
}

TEST_CASE("a refusal echoes an id only if it is one") {
  struct Row {
    const char* sent;
    const char* echoed;
  };
  for (const Row& row : {Row{"7", "7"}, Row{"\"7\"", "\"7\""}, Row{"1.5", "null"},
                         Row{"null", "null"}, Row{"{\"a\":[1]}", "null"}}) {
    CAPTURE(row.sent);
    transport::StdioLimits limits;
    limits.requests_in_flight = 0;
    Conversation conversation(limits);
    conversation.send(R"({"jsonrpc":"2.0","method":"ping","id":)" + std::string(row.sent) + "}");
    auto refused = conversation.receive();
    REQUIRE(refused);
    CHECK(refused->find("\"id\":" + std::string(row.echoed)) != std::string::npos);
    CHECK(refused->find("-32603") != std::string::npos);
  }
}
