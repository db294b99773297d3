#include "sandbox/pandastack/http.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <condition_variable>

#include "async/task_group.hpp"
#include "tests/sandbox/pandastack/scripted_server.hpp"

namespace sandbox::pandastack {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

Request ask(const std::string& url, const std::string& method = "GET", std::string body = {}) {
  Request request;
  request.purpose = "could not ask";
  request.url = url;
  request.method = method;
  request.body = std::move(body);
  request.limit = 15s;
  return request;
}

Response send(Loop& loop, Http& http, Request request) {
  return loop.run(http.send(std::move(request)));
}

std::optional<Error> failure_of(Loop& loop, Http& http, Request request) {
  try {
    send(loop, http, std::move(request));
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// Lets a test and its server wait for each other.
class Gate {
 public:
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 5s, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

awaitable<void> read_on(Answer& answer, std::string& into) {
  while (auto bytes = co_await answer.read()) into += *bytes;
}

}  // namespace

TEST_CASE("a request arrives as it was made") {
  ScriptedServer server(replies(std::vector<std::string>(20, reply(200, "{}"))));
  Loop loop;
  Http http(loop.io.get_executor(), {});

  struct Row {
    const char* method;
    std::string body;
    const char* length;  // of the body, as said; "" = not said
  };
  const Row rows[] = {
      {"GET", "", ""},
      {"HEAD", "", ""},
      {"DELETE", "", ""},
      {"POST", "", "0"},
      {"POST", "{}", "2"},
      {"PUT", "", "0"},
      {"PATCH", "", "0"},
      {"DELETE", "{}", "2"},
      {"PUT", std::string("\0\xff\n", 3), "3"},
      {"PUT", std::string(3 << 20, 'x'), "3145728"},  // libcurl would ask "Expect: 100-continue"
  };
  for (const Row& row : rows) {
    CAPTURE(row.method);
    CAPTURE(row.length);
    Request request = ask(server.url("/a/../b%2Fc?d=%20"), row.method, row.body);
    request.headers = {{"X-One", "1"}, {"X-Empty", ""}};
    Response response = send(loop, http, std::move(request));
    CHECK(response.body == (std::string(row.method) == "HEAD" ? "" : "{}"));
    CHECK(response.status == 200);
    Seen seen = server.seen().back();
    CHECK(seen.method == row.method);
    CHECK(seen.target == "/a/../b%2Fc?d=%20");
    CHECK(seen.body == row.body);
    CHECK(seen.header("content-length") == row.length);
    CHECK(seen.header("x-one") == "1");
    CHECK(seen.has("x-empty"));
    for (const char* unasked : {"expect", "content-type", "accept-encoding", "cookie", "referer"})
      CHECK_FALSE(seen.has(unasked));
  }
}

TEST_CASE("an answer comes back as it was sent") {
  struct Row {
    const char* name;
    std::string sent;
    int status;
    const char* body;
    bool ends = false;
  };
  const Row rows[] = {
      {"sized", "HTTP/1.1 201 Created\r\nX-A:  b \r\nContent-Length: 2\r\n\r\nhi", 201, "hi"},
      {"no body", "HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n", 204, ""},
      {"chunked, with a trailer",
       "HTTP/1.1 200 OK\r\nX-A: b\r\nTransfer-Encoding: chunked\r\n\r\n"
       "2\r\nhe\r\n3\r\nllo\r\n0\r\nX-A: trailer\r\n\r\n",
       200, "hello"},
      {"after interim answers",
       "HTTP/1.1 100 Continue\r\nX-A: no\r\n\r\nHTTP/1.1 103 Early\r\nX-A: no\r\n\r\n"
       "HTTP/1.1 404 Not Found\r\nx-a: b\r\nContent-Length: 2\r\n\r\nno",
       404, "no"},
      {"up to the end of the connection", "HTTP/1.1 200 OK\r\nX-A: b\r\n\r\nall", 200, "all", true},
      {"a redirect is an answer",
       "HTTP/1.1 302 Found\r\nX-A: b\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
       302, ""},
  };
  Loop loop;
  Http http(loop.io.get_executor(), {});
  for (const Row& row : rows) {
    CAPTURE(row.name);
    ScriptedServer server([&](Peer& peer, const Seen&) {
      peer.send(row.sent);
      peer.ended = row.ends;
    });
    Response response = send(loop, http, ask(server.url("/")));
    CHECK(response.status == row.status);
    CHECK(response.body == row.body);
    REQUIRE(response.find("x-a"));
    CHECK(*response.find("x-a") == "b");
    CHECK_FALSE(response.find("x-b"));
    CHECK(server.seen().size() == 1);
  }
}

TEST_CASE("what goes wrong is told apart, and whether anything was sent") {
  struct Row {
    const char* name;
    std::string sent;
    Failure failure;
    bool resets = false;
  };
  const std::string head = "HTTP/1.1 200 OK\r\n";
  const Row rows[] = {
      {"no answer", "", Failure::cut},
      {"a reset", "", Failure::cut, true},
      {"half a head", head + "Content-Le", Failure::cut},
      {"a short body", head + "Content-Length: 10\r\n\r\nhalf", Failure::cut},
      {"a body that is reset", head + "Content-Length: 10\r\n\r\nhalf", Failure::cut, true},
      {"chunks without an end", head + "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
       Failure::cut},
      {"chunks that are none", head + "Transfer-Encoding: chunked\r\n\r\nnonsense\r\n",
       Failure::cut},
      {"not HTTP", "SSH-2.0-OpenSSH_9.2\r\n", Failure::malformed},
      {"a head without end", head + "X: " + std::string(70 << 10, 'x') + "\r\n",
       Failure::malformed},
      {"too many headers",
       [&] {
         std::string many = head;
         for (int i = 0; i < 5000; ++i) many += "X-Header: some value\r\n";
         return many;
       }(),
       Failure::malformed},
      {"too long a body", head + "Content-Length: 2000\r\n\r\n" + std::string(2000, 'x'),
       Failure::too_large},
  };
  Loop loop;
  Http http(loop.io.get_executor(), {});
  for (const Row& row : rows) {
    CAPTURE(row.name);
    ScriptedServer server([&](Peer& peer, const Seen&) {
      peer.send(row.sent);
      peer.ended = true;
      if (!row.resets) return;
      std::this_thread::sleep_for(50ms);  // so that what was sent is read before the reset
      peer.reset();
    });
    Request request = ask(server.url("/"), "POST", "{}");
    request.cap = 1000;
    auto error = failure_of(loop, http, std::move(request));
    REQUIRE(error);
    CAPTURE(error->what());
    CHECK(error->failure == row.failure);
    CHECK(error->outcome == Outcome::unknown);
    CHECK(error->status == 0);
    CHECK(std::string(error->what()).starts_with("could not ask: "));
    CHECK(server.seen().size() == 1);
  }

  SUBCASE("nobody listens") {
    std::string url;
    {
      ScriptedServer gone(replies({}));
      url = gone.url("/");
    }
    auto error = failure_of(loop, http, ask(url, "POST", "{}"));
    REQUIRE(error);
    CHECK(error->failure == Failure::no_connection);
    CHECK(error->outcome == Outcome::refused);
  }
  SUBCASE("not a scheme of ours") {
    for (const char* url : {"file:///etc/passwd", "ftp://127.0.0.1/", "http://", "nonsense:"}) {
      auto error = failure_of(loop, http, ask(url));
      REQUIRE(error);
      CHECK(error->failure == Failure::no_connection);
      CHECK(error->outcome == Outcome::refused);
    }
  }
  SUBCASE("a line break would be a header of its own") {
    std::vector<Request> bad(4, ask("http://127.0.0.1:1/"));
    bad[0].headers = {{"X", "a\r\nY: b"}};
    bad[1].headers = {{"X: a\r\nY", "b"}};
    bad[2].url += "a b";
    bad[3].method = "GET /\r\n";
    for (Request& request : bad)
      CHECK_THROWS_AS(send(loop, http, std::move(request)), std::invalid_argument);
  }
}

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
  options.connect_limit = 200ms;
  Http http(loop.io.get_executor(), options);
  auto began = Clock::now();

  SUBCASE("the head of the answer does not come") {
    ScriptedServer server([](Peer& peer, const Seen&) { CHECK(peer.is_left()); });
    Request request = ask(server.url("/"), "POST");
    request.limit = 200ms;
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
    ScriptedServer server([](Peer&, const Seen&) { std::this_thread::sleep_for(500ms); }, false);
    Request request = ask(server.url("/"), "PUT", std::string(32 << 20, 'x'));
    request.limit = 300ms;
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
  CHECK(Clock::now() - began < 4s);
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
    auto response = co_await async::within(100ms, std::move(sending));
    co_return response.has_value();
  };
  auto began = Clock::now();
  CHECK_FALSE(loop.run(hurried(http, ask(server.url("/"), "POST", "{}"))));
  CHECK(Clock::now() - began < 1s);
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
  loop.io.run_for(50ms);
  REQUIRE(arrived.wait());
  auto began = Clock::now();
  SUBCASE("and they end") {
    http.reset();
    CHECK(Clock::now() - began < 500ms);
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

TEST_CASE("a redirect is not followed") {
  ScriptedServer other(replies({reply(200, "stolen")}));
  ScriptedServer server(replies({reply(307, "", "Location: " + other.url("/") + "\r\n")}));
  Loop loop;
  Http http(loop.io.get_executor(), {});
  Request request = ask(server.url("/"), "POST", "{}");
  request.headers = {{"Authorization", "Bearer secret"}};
  CHECK(send(loop, http, std::move(request)).status == 307);
  CHECK(other.connections() == 0);
}

TEST_CASE("proxies of the environment") {
  struct Variable {
    const char* name;
    Variable(const char* variable, const std::string& value) : name(variable) {
      setenv(name, value.c_str(), 1);
    }
    ~Variable() { unsetenv(name); }
  };
  ScriptedServer proxy([](Peer& peer, const Seen& seen) {
    bool tunnel = seen.method == "CONNECT";
    peer.send(reply(tunnel ? 403 : 200, "from the proxy"));
  });
  Loop loop;
  Variable http_proxy("http_proxy", proxy.url()), https_proxy("HTTPS_PROXY", proxy.url());

  SUBCASE("http goes through it") {
    Http http(loop.io.get_executor(), {});
    CHECK(send(loop, http, ask("http://panda.invalid/v1/me")).body == "from the proxy");
    CHECK(proxy.seen().at(0).target == "http://panda.invalid/v1/me");
  }
  SUBCASE("https is tunnelled, and the proxy does not see the key") {
    Http http(loop.io.get_executor(), {});
    Request request = ask("https://panda.invalid/v1/me", "POST", "{}");
    request.headers = {{"Authorization", "Bearer secret"}};
    auto error = failure_of(loop, http, std::move(request));
    REQUIRE(error);
    CHECK(error->failure == Failure::no_connection);
    CHECK(error->outcome == Outcome::refused);
    CHECK(proxy.seen().at(0).method == "CONNECT");
    CHECK(proxy.seen().at(0).target == "panda.invalid:443");
    CHECK_FALSE(proxy.seen().at(0).has("authorization"));
  }
  SUBCASE("but not where NO_PROXY says so") {
    Variable no_proxy("NO_PROXY", "127.0.0.1");
    ScriptedServer server(replies({reply(200, "direct")}));
    Http http(loop.io.get_executor(), {});
    CHECK(send(loop, http, ask(server.url("/"))).body == "direct");
    CHECK(proxy.connections() == 0);
  }
}

}  // namespace sandbox::pandastack
