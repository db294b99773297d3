#include "sandbox/pandastack/transfers.hpp"

#include <doctest/doctest.h>

#include <atomic>

#include "async/task_group.hpp"
#include "tests/sandbox/pandastack/http_scene.hpp"

namespace sandbox::pandastack {

using Clock = std::chrono::steady_clock;

TEST_CASE("a thousand calls take one connection") {
  ScriptedServer server([](Peer& peer, const Seen& seen) { peer.send(reply(200, seen.body)); });
  Loop loop;
  Http http(loop.io.get_executor(), {});
  auto thousand = [](Http& client, std::string url) -> awaitable<int> {
    int good = 0;
    for (int i = 0; i < 1000; ++i) {
      Request request = ask(url, "POST", std::to_string(i));
      Response response = co_await client.send(std::move(request));
      good += response.body == std::to_string(i);
    }
    co_return good;
  };
  auto began = Clock::now();
  CHECK(loop.run(thousand(http, server.url("/"))) == 1000);
  MESSAGE("microseconds a call: ", (Clock::now() - began) / 1us / 1000);
  CHECK(server.connections() == 1);
}

TEST_CASE("calls at the same time do not wait for each other") {
  constexpr int kCalls = 16;
  std::atomic<int> waiting{0};
  Gate gate;
  ScriptedServer server([&](Peer& peer, const Seen& seen) {
    if (++waiting == kCalls) gate.open();
    if (gate.wait()) peer.send(reply(200, seen.body));
  });
  Loop loop;
  Http http(loop.io.get_executor(), {});
  async::TaskGroup group(loop.io.get_executor());
  int good = 0;
  auto call = [](Http& client, std::string url, std::string body, int& count) -> awaitable<void> {
    Request request = ask(url, "POST", body);
    Response response = co_await client.send(std::move(request));
    count += response.body == body;
  };
  for (int i = 0; i < kCalls; ++i)
    group.spawn(call(http, server.url("/"), std::to_string(i), good));
  loop.run(group.join());
  CHECK(good == kCalls);
  CHECK(server.connections() == kCalls);
}

TEST_CASE("libcurl repeats nothing that may have had an effect") {
  // The first request is answered and its connection kept; the second is read, then nothing.
  auto answers_once = [](std::atomic<int>& count) {
    return [&count](Peer& peer, const Seen&) {
      int number = ++count;
      if (number != 2) peer.send(reply(200, "{}"));
      peer.ended = number == 2;
    };
  };
  struct Row {
    const char* method;
    const char* body;
    std::size_t requests;
  };
  const Row rows[] = {{"POST", "{}", 2}, {"POST", "", 2}, {"PUT", "{}", 2},
                      {"PATCH", "", 2},  {"GET", "", 3},  {"DELETE", "", 3}};
  for (const Row& row : rows) {
    CAPTURE(row.method);
    std::atomic<int> count{0};
    ScriptedServer server(answers_once(count));
    Loop loop;
    Http http(loop.io.get_executor(), {});
    CHECK(send(loop, http, ask(server.url("/"))).status == 200);
    auto error = failure_of(loop, http, ask(server.url("/"), row.method, row.body));
    CHECK(error.has_value() == (row.requests == 2));
    if (error) {
      CHECK(error->failure == Failure::cut);
      CHECK(error->outcome == Outcome::unknown);
    }
    CHECK(server.seen().size() == row.requests);
  }
}

TEST_CASE("every wait has an end") {
  Loop loop;
  HttpOptions options;
  options.connect_limit = 2s;
  Http http(loop.io.get_executor(), options);
  auto began = Clock::now();

  SUBCASE("the head of the answer does not come") {
    ScriptedServer server([](Peer& peer, const Seen&) { CHECK(peer.is_left()); });
    Request request = ask(server.url("/"), "POST");
    request.limit = 2s;
    auto error = failure_of(loop, http, std::move(request));
    REQUIRE(error);
    CHECK(error->failure == Failure::deadline);
    CHECK(error->outcome == Outcome::unknown);
  }
  SUBCASE("the body comes a byte at a time") {
    ScriptedServer server([](Peer& peer, const Seen&) {
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
      while (peer.send("x")) std::this_thread::sleep_for(20ms);
      peer.ended = true;
    });
    Request request = ask(server.url("/"));
    request.limit = 300ms;
    auto error = failure_of(loop, http, std::move(request));
    REQUIRE(error);
    CHECK(error->failure == Failure::deadline);
  }
  SUBCASE("nothing comes for a while") {
    ScriptedServer server([](Peer& peer, const Seen&) {
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nx");
      CHECK(peer.is_left());
      peer.ended = true;
    });
    Request request = ask(server.url("/"));
    request.limit = 30s;
    request.silence = 1s;
    auto error = failure_of(loop, http, std::move(request));
    REQUIRE(error);
    CHECK(error->failure == Failure::deadline);
  }
  SUBCASE("the server never reads") {
    ScriptedServer server([](Peer&, const Seen&) { std::this_thread::sleep_for(3s); }, false);
    Request request = ask(server.url("/"), "PUT", std::string(32 << 20, 'x'));
    request.limit = 2s;
    auto error = failure_of(loop, http, std::move(request));
    REQUIRE(error);
    CHECK(error->failure == Failure::deadline);
    CHECK(error->outcome == Outcome::unknown);
  }
  SUBCASE("the connection is not accepted") {
    // A queue of one that is full: Linux then drops what else wants in.
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* any = reinterpret_cast<sockaddr*>(&address);
    REQUIRE(bind(fd, any, size) == 0);
    REQUIRE(listen(fd, 0) == 0);
    REQUIRE(getsockname(fd, any, &size) == 0);
    int first = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    REQUIRE(connect(first, any, size) == 0);
    std::string url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/";
    auto error = failure_of(loop, http, ask(url, "POST"));
    REQUIRE(error);
    CHECK(error->failure == Failure::deadline);
    CHECK(error->outcome == Outcome::refused);
    close(first);
    close(fd);
  }
  CHECK(Clock::now() - began < 20s);
}

TEST_CASE("a streamed answer") {
  Loop loop;
  Http http(loop.io.get_executor(), {});
  auto open = [&](Request request) { return loop.run(http.open(std::move(request))); };
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

  SUBCASE("comes as it is sent") {
    Gate first_read;
    ScriptedServer server([&](Peer& peer, const Seen&) {
      peer.send(chunked + "3\r\none\r\n");
      CHECK(first_read.wait());
      peer.send("3\r\ntwo\r\n0\r\n\r\n");
    });
    auto answer = open(ask(server.url("/")));
    CHECK(loop.run(answer->read()) == "one");
    first_read.open();
    CHECK(loop.run(answer->read()) == "two");
    CHECK(loop.run(answer->read()) == std::nullopt);
    CHECK(loop.run(answer->read()) == std::nullopt);
  }
  SUBCASE("that is cut in the middle gives what came before") {
    ScriptedServer server([&](Peer& peer, const Seen&) {
      peer.send(chunked + "3\r\none\r\n");
      peer.ended = true;
    });
    auto answer = open(ask(server.url("/"), "POST", "{}"));
    std::string got;
    CHECK_THROWS_AS(loop.run(read_on(*answer, got)), Error);
    CHECK(got == "one");
  }
  SUBCASE("does not pile up when nobody reads it") {
    constexpr std::size_t kSize = 48 << 20;
    std::atomic<std::size_t> sent{0};
    ScriptedServer server([&](Peer& peer, const Seen&) {
      peer.send("HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(kSize) + "\r\n\r\n");
      const std::string block(1 << 20, 'x');
      for (std::size_t i = 0; i < kSize && peer.send(block); i += block.size())
        sent += block.size();
    });
    Request request = ask(server.url("/"));
    request.cap = kNoCap;
    auto answer = open(std::move(request));
    loop.run(async::sleep_for(300ms));
    CHECK(sent < 24u << 20);  // 1 MiB is ours, the rest waits in the sockets
    std::string got;
    loop.run(read_on(*answer, got));
    CHECK(got.size() == kSize);
  }
  SUBCASE("that is dropped is left at once") {
    std::atomic<bool> left{false};
    Gate done;
    ScriptedServer server([&](Peer& peer, const Seen&) {
      peer.send(chunked + "3\r\none\r\n");
      left = peer.is_left();
      peer.ended = true;
      done.open();
    });
    auto answer = open(ask(server.url("/")));
    answer.reset();
    CHECK(done.wait());
    CHECK(left);
  }
}

TEST_CASE("a call that is cancelled is given up") {
  std::atomic<bool> left{false};
  Gate done;
  ScriptedServer server([&](Peer& peer, const Seen&) {
    left = peer.is_left();
    peer.ended = true;
    done.open();
  });
  Loop loop;
  Http http(loop.io.get_executor(), {});
  auto hurried = [](Http& client, Request request) -> awaitable<bool> {
    auto sending = client.send(std::move(request));
    auto response = co_await async::within(1s, std::move(sending));
    co_return response.has_value();
  };
  auto began = Clock::now();
  CHECK_FALSE(loop.run(hurried(http, ask(server.url("/"), "POST", "{}"))));
  CHECK(Clock::now() - began < 8s);
  CHECK(done.wait());
  CHECK(left);
}

TEST_CASE("it can be destroyed with calls under way") {
  Gate arrived;
  std::atomic<int> count{0};
  ScriptedServer server([&](Peer& peer, const Seen&) {
    if (++count == 3) arrived.open();
    peer.send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n");
    peer.is_left();
    peer.ended = true;
  });
  Loop loop;
  auto http = std::make_unique<Http>(loop.io.get_executor(), HttpOptions());
  int closed = 0;
  auto call = [](Http& client, std::string url, int& count) -> awaitable<void> {
    try {
      Request request = ask(url, "POST", "{}");
      co_await client.send(std::move(request));
    } catch (const Error& error) {
      count += error.failure == Failure::closed;
    }
  };
  async::TaskGroup group(loop.io.get_executor());
  for (int i = 0; i < 3; ++i) group.spawn(call(*http, server.url("/"), closed));
  for (auto end = Clock::now() + 30s; count < 3 && Clock::now() < end;) loop.io.run_for(20ms);
  REQUIRE(arrived.wait());
  auto began = Clock::now();
  SUBCASE("and they end") {
    http.reset();
    CHECK(Clock::now() - began < 8s);
    loop.run(group.join());
    CHECK(closed == 3);
  }
  SUBCASE("closed first, it takes no more") {
    http->close();
    loop.run(group.join());
    loop.run(call(*http, server.url("/"), closed));
    CHECK(closed == 4);
    http->close();
  }
}

}  // namespace sandbox::pandastack
