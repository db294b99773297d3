#include "sandbox/pandastack/http.hpp"

#include <doctest/doctest.h>

#include "tests/sandbox/pandastack/http_scene.hpp"

namespace sandbox::pandastack {

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
