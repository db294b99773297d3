#include "transport/http/listener.hpp"

#include <doctest/doctest.h>

#include <atomic>

#include "tests/transport/http/sockets.hpp"

namespace transport::http {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMebibyte = 1 << 20;

std::atomic<int> seen_gone, refused_writes;

awaitable<void> echo(Exchange& exchange) {
  auto body = co_await exchange.body(kMebibyte);
  Response response = body ? plain(200, *body) : plain(exchange.body_failure(), "no body");
  co_await exchange.reply(std::move(response));
}

awaitable<void> stream(Exchange& exchange, int parts, std::size_t size) {
  Response head;
  std::string part(size, 'x');
  co_await exchange.begin(std::move(head));
  for (int i = 0; i < parts; ++i) {
    bool taken = co_await exchange.write(part);
    if (!taken) ++refused_writes;
    if (!taken) co_return;
  }
  co_await exchange.end();
}

awaitable<void> wait_for_gone(Exchange& exchange) {
  co_await exchange.gone();
  ++seen_gone;
  co_await exchange.reply(plain(200, "you were gone"));
}

awaitable<void> count_upload(Exchange& exchange) {
  std::vector<char> buffer(65536);
  std::size_t total = 0, size = 1;
  while (size > 0) {
    size = co_await exchange.read(buffer);
    total += size;
  }
  co_await exchange.reply(plain(200, std::to_string(total)));
}

awaitable<void> answer_later(Exchange& exchange, std::chrono::milliseconds time) {
  co_await async::sleep_for(time);
  co_await exchange.reply(plain(200, "later"));
}

awaitable<void> fail(Exchange&) {
  throw std::runtime_error("a defect");
  co_return;
}

awaitable<void> serve(Exchange& exchange) {
  if (auto* who = exchange.request().header("X-Principal")) exchange.request().principal = *who;
  const std::string& path = exchange.request().path;
  if (path == "/stream") return stream(exchange, 3, 1);
  if (path == "/flood") return stream(exchange, 1000, kMebibyte);
  if (path == "/trickle") return stream(exchange, 1'000'000, 1024);
  if (path == "/wait") return wait_for_gone(exchange);
  if (path == "/upload") return count_upload(exchange);
  if (path == "/later") return answer_later(exchange, 300ms);
  if (path == "/much-later") return answer_later(exchange, 60s);
  if (path == "/defect") return fail(exchange);
  if (path == "/ignore") return exchange.reply(plain(403, "no"));
  if (path == "/big") return exchange.reply(plain(200, std::string(8 * kMebibyte, 'x')));
  return echo(exchange);
}

bool wait_until(const std::function<bool()>& condition) {
  for (auto end = Clock::now() + 30s; Clock::now() < end; std::this_thread::sleep_for(5ms))
    if (condition()) return true;
  return condition();
}

std::string post(const std::string& path, const std::string& body) {
  return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::string get(const std::string& path, const std::string& more = "") {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + more + "\r\n";
}

TEST_CASE("what cannot be read for sure in one way only is refused, and the connection ends") {
  struct Row {
    const char* name;
    std::string bytes;
    const char* status;
  };
  const std::string head = "POST / HTTP/1.1\r\nHost: x\r\n";
  const Row rows[] = {
      {"both lengths", head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "400"},
      {"both, the other way round",
       head + "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n", "400"},
      {"two lengths", head + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400"},
      {"the same length twice", head + "Content-Length: 1\r\nContent-Length: 1\r\n\r\na", "400"},
      {"a list of lengths", head + "Content-Length: 1, 1\r\n\r\na", "400"},
      {"a signed length", head + "Content-Length: +1\r\n\r\na", "400"},
      {"a negative length", head + "Content-Length: -1\r\n\r\na", "400"},
      {"a length beyond 64 bits", head + "Content-Length: 99999999999999999999\r\n\r\na", "400"},
      {"an unknown coding", head + "Transfer-Encoding: gzip\r\n\r\n", "501"},
      {"a coding twice", head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
       "400"},
      {"a coding in disguise", head + "Transfer-Encoding: xchunked\r\n\r\n", "501"},
      {"chunked, but not last", head + "Transfer-Encoding: chunked, gzip\r\n\r\n", "501"},
      {"a coding in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
       "400"},
      {"a folded header", head + "X: a\r\n b\r\n\r\n", "400"},
      {"a blank before the colon", head + "Content-Length : 1\r\n\r\na", "400"},
      {"a bare line feed", "GET / HTTP/1.1\nHost: x\n\n", "400"},
      {"a bare carriage return", head + "X: a\rb\r\n\r\n", "400"},
      {"a NUL in a header", head + std::string("X: a\0b\r\n\r\n", 10), "400"},
      {"a header without a colon", head + "nonsense\r\n\r\n", "400"},
      {"a malformed chunk", head + "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "400"},
      {"a chunk longer than it says",
       head + "Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", "400"},
      {"a TLS hello", std::string("\x16\x03\x01\x02\x00\x01\x00\x01", 8), "400"},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"},
      {"no version", "GET /\r\n\r\n", "400"},
      {"a target that is no path", "GET mcp HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"a target with a blank", "GET /a b HTTP/1.1\r\nHost: x\r\n\r\n", "505"},
      {"another host in the target", "GET http://y/ HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"CONNECT", "CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n", "400"},
      {"an unknown expectation", head + "Expect: tea\r\nContent-Length: 1\r\n\r\na", "417"},
      {"a long target", "GET /" + std::string(9000, 'a'), "414"},
      {"long headers", head + "X: " + std::string(40'000, 'a') + "\r\n\r\n", "431"},
      {"endless headers", head + "X: " + std::string(40'000, 'a'), "431"},
      {"many headers",
       [&] {
         std::string bytes = head;
         for (int i = 0; i < 200; ++i) bytes += "X: a\r\n";
         return bytes + "\r\n";
       }(),
       "431"},
  };
  LiveListener listener(serve);
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    RawClient client(listener.port());
    client.send(row.bytes);
    std::string answer = client.read_until("\r\n\r\n");
    CHECK(answer.substr(0, 13) == std::string("HTTP/1.1 ") + row.status + " ");
    CHECK(answer.find("Connection: close\r\n") != answer.npos);
    client.half_close();
    CHECK(client.read_all().find("still open") == std::string::npos);
  }
}

TEST_CASE("bodies come whole, however they are sent") {
  struct Row {
    const char* name;
    std::string bytes;
    const char* end;
  };
  const std::string head = "POST /echo HTTP/1.1\r\nHost: x\r\n";
  const Row rows[] = {
      {"none", head + "\r\n", "\r\n\r\n\n"},
      {"by length", post("/echo", "hello"), "\r\n\r\nhello\n"},
      {"in chunks",
       head + "Transfer-Encoding: Chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nT: x\r\n\r\n",
       "\r\n\r\nhello\n"},
      {"after an empty line", "\r\n" + post("/echo", "hello"), "\r\n\r\nhello\n"},
      {"to an absolute target",
       "POST http://x/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\na", "\r\n\r\na\n"},
      {"too long by length", post("/echo", std::string(kMebibyte + 1, 'a')), "no body\n"},
      {"too long in chunks",
       head + "Transfer-Encoding: chunked\r\n\r\n100001\r\n" + std::string(kMebibyte + 1, 'a') +
           "\r\n0\r\n\r\n",
       "no body\n"},
      {"read in parts", post("/upload", std::string(3 * kMebibyte, 'a')), "\r\n\r\n3145728\n"},
  };
  LiveListener listener(serve);
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    RawClient client(listener.port());
    CHECK(client.send(row.bytes));
    CHECK(client.read_until(row.end).ends_with(row.end));
  }
}

TEST_CASE("a request split at every byte is the same request") {
  LiveListener listener(serve);
  std::string bytes =
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
  RawClient client(listener.port());
  for (std::size_t at = 1; at < bytes.size(); ++at) {
    client.send(bytes.substr(0, at));
    std::this_thread::sleep_for(1ms);
    client.send(bytes.substr(at));
    CHECK(client.read_until("ab\n").ends_with("ab\n"));
  }
}

TEST_CASE("a client that expects it is told to go on") {
  LiveListener listener(serve);
  RawClient client(listener.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  CHECK(client.read_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ab");
  CHECK(client.read_until("ab\n").starts_with("HTTP/1.1 200 "));

  RawClient refused(listener.port());
  refused.send(
      "POST /ignore HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  CHECK(refused.read_until("no\n").starts_with("HTTP/1.1 403 "));
}

TEST_CASE("requests in a row are answered in a row, each to its own length") {
  LiveListener listener(serve);
  RawClient client(listener.port());
  std::string head_request = "HEAD /echo HTTP/1.1\r\nHost: x\r\n\r\n";
  client.send(post("/echo", "one") + get("/stream") + head_request + post("/ignore", "unread") +
              get("/defect") + get("/never"));
  std::string got = client.read_all();
  std::size_t at = 0;
  for (const char* part :
       {"Content-Length: 4\r\n\r\none\nHTTP/1.1 200 OK",
        "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n1\r\nx\r\n1\r\nx\r\n0\r\n\r\nHTTP/1.1 200 OK",
        "Content-Length: 1\r\n\r\nHTTP/1.1 403 Forbidden", "\r\n\r\nno\nHTTP/1.1 500 "}) {
    CAPTURE(std::string(part));
    std::size_t found = got.find(part, at);
    REQUIRE(found != got.npos);
    at = found + 1;
  }
  CHECK(got.find("HTTP/1.1", at + 10) == got.npos);  // nothing after a defect
  CHECK(got.find("a defect") == got.npos);           // which is for the log
}

TEST_CASE("HTTP/1.0 gets its answer and the end of the connection") {
  LiveListener listener(serve);
  RawClient client(listener.port());
  client.send("GET /stream HTTP/1.0\r\n\r\n");
  std::string got = client.read_all();
  CHECK(got.ends_with("\r\n\r\nxxx"));
  CHECK(got.find("Transfer-Encoding") == got.npos);
}

TEST_CASE("a client that closes only its sending side is answered") {
  LiveListener listener(serve);
  for (const char* path : {"/later", "/wait", "/stream"}) {
    CAPTURE(std::string(path));
    RawClient client(listener.port());
    client.send(get(path));
    client.half_close();
    CHECK(client.read_all().starts_with("HTTP/1.1 200 "));
  }
}

TEST_CASE("a handler that waits sees that its client has left") {
  LiveListener listener(serve);
  struct Row {
    const char* name;
    std::string ahead;  // sent behind the request
  };
  const Row rows[] = {{"nothing sent ahead", ""}, {"another request sent ahead", get("/echo")}};
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    int before = seen_gone;
    RawClient client(listener.port());
    client.send(get("/wait") + row.ahead);
    std::this_thread::sleep_for(50ms);
    CHECK(seen_gone == before);
    client.close();
    CHECK(wait_until([&] { return seen_gone == before + 1; }));
  }
  CHECK(wait_until([&] { return listener.counters().open == 0; }));
}

ListenerLimits impatient() {
  ListenerLimits limits;
  limits.header_limit = 200ms;
  limits.body_stall = 200ms;
  limits.idle_limit = 200ms;
  limits.write_stall = 300ms;
  return limits;
}

TEST_CASE("a client that sends much ahead of an answer that is waited for is dropped") {
  LiveListener listener(serve);
  int before = seen_gone;
  RawClient client(listener.port());
  client.send(get("/wait") + std::string(100'000, 'a'));
  CHECK(wait_until([&] { return seen_gone == before + 1; }));
  CHECK(client.read_all() == "");
}

TEST_CASE("clients have their time and no more") {
  LiveListener listener(serve, impatient());
  struct Row {
    const char* name;
    std::string begin;   // sent at once
    char drip;           // then again and again
    const char* status;  // of the answer; empty: none
  };
  const Row rows[] = {
      {"no request", "", 0, ""},
      {"no second request", "", 0, ""},
      {"half a head", "GET / HT", 0, "HTTP/1.1 408 "},
      {"a head drop by drop", "GET / HTTP/1.1\r\nX: ", 'a', "HTTP/1.1 408 "},
      {"half a body", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab", 0,
       "HTTP/1.1 408 "},
      {"a body drop by drop", "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 999\r\n\r\n", 'a',
       "HTTP/1.1 408 "},
      {"half an upload", "POST /upload HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nab", 0,
       "HTTP/1.1 408 "},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    auto begin = Clock::now();
    RawClient client(listener.port());
    client.send(row.begin);
    std::atomic<bool> stop = false;
    std::thread dripping([&] {
      for (; row.drip && !stop; std::this_thread::sleep_for(20ms))
        if (!client.send(std::string_view(&row.drip, 1))) break;
    });
    std::string got = client.read_until("\r\n\r\n");
    stop = true;
    dripping.join();
    CHECK(got.starts_with(row.status));
    CHECK(Clock::now() - begin < 8s);  // much less than without these limits
  }
}

TEST_CASE(
    "a client that reads a byte now and then holds a response no longer than one that does not") {
  LiveListener listener(serve, impatient());
  for (bool reads : {false, true}) {
    CAPTURE(reads);
    int before = refused_writes;
    std::uint64_t sent = listener.counters().bytes_out;
    RawClient client(listener.port(), 4096);
    client.send(get("/trickle"));
    bool dropped = wait_until([&] {
      if (reads) client.read_byte();
      return refused_writes == before + 1;
    });
    CHECK(dropped);
    CHECK(listener.counters().bytes_out - sent < 4 * kMebibyte);
    CHECK(wait_until([&] { return listener.counters().open == 0; }));
    CHECK(listener.counters().streams == 0);
  }
  CHECK(listener.counters().dropped == 2);
}

TEST_CASE("a client that leaves during its answer ends it") {
  LiveListener listener(serve);
  int before = refused_writes;
  RawClient client(listener.port(), 4096);
  client.send(get("/flood"));
  CHECK(wait_until([&] { return listener.counters().streams == 1; }));
  client.close();
  CHECK(wait_until([&] { return refused_writes == before + 1; }));
  CHECK(wait_until([&] { return listener.counters().open == 0; }));
}

TEST_CASE("limits on connections and streams hold, and let others in afterwards") {
  ListenerLimits limits;
  limits.connections = 3;
  limits.connections_per_address = 3;
  limits.streams = 1;
  LiveListener listener(serve, limits);
  RawClient streaming(listener.port(), 4096);
  streaming.send(get("/flood"));
  CHECK(wait_until([&] { return listener.counters().streams == 1; }));
  {
    RawClient second(listener.port());
    second.send(get("/stream"));
    CHECK(second.read_until("\n\n").starts_with("HTTP/1.1 503 "));
  }
  RawClient third(listener.port()), fourth(listener.port()), waiting(listener.port());
  CHECK(wait_until([&] { return listener.counters().open == 3; }));
  waiting.send(post("/echo", "patience"));
  third.close();
  fourth.close();
  CHECK(waiting.read_until("patience\n").ends_with("patience\n"));
}

TEST_CASE("one principal's streams leave room for others'") {
  ListenerLimits limits;
  limits.streams_per_principal = 1;
  LiveListener listener(serve, limits);
  RawClient first(listener.port(), 4096);
  first.send(get("/flood", "X-Principal: anna\r\n"));
  CHECK(wait_until([&] { return listener.counters().streams == 1; }));
  auto status = [&](const char* who) {
    RawClient client(listener.port());
    client.send(get("/stream", std::string("X-Principal: ") + who + "\r\n"));
    return client.read_until("\r\n\r\n").substr(9, 3);
  };
  CHECK(status("anna") == "503");
  CHECK(status("bert") == "200");
  first.close();
  CHECK(wait_until([&] { return listener.counters().streams == 0; }));
  CHECK(status("anna") == "200");
}

TEST_CASE("the limit for one address leaves room for others") {
  ListenerLimits limits;
  limits.connections_per_address = 2;
  LiveListener listener(serve, limits);
  RawClient first(listener.port()), second(listener.port()), third(listener.port());
  CHECK(third.read_all() == "");
  first.send(get("/echo"));
  CHECK(first.read_until("\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

TEST_CASE("when it is stopped, requests in flight get the grace and others end at once") {
  LiveListener listener(serve);
  RawClient idle(listener.port()), busy(listener.port()), hopeless(listener.port());
  busy.send(get("/later"));
  hopeless.send(get("/much-later"));
  CHECK(wait_until([&] { return listener.counters().requests == 2; }));
  auto begin = Clock::now();
  listener.stop(4s);
  CHECK(idle.read_all() == "");
  CHECK(Clock::now() - begin < 3s);
  std::string got = busy.read_all();
  CHECK(got.ends_with("later\n"));
  CHECK(got.find("Connection: close") != got.npos);
  CHECK(hopeless.read_all() == "");
  CHECK_THROWS(RawClient(listener.port()));
  listener.join();
  CHECK(Clock::now() - begin < 20s);
}

TEST_CASE("an address that cannot be had is an error that names it") {
  LiveListener listener(serve);
  boost::asio::io_context io;
  auto listen = [&](const char* address, std::uint16_t port) {
    Listener second(io.get_executor(), address, port, serve);
  };
  std::string port = std::to_string(listener.port());
  std::string taken = "cannot listen on 127.0.0.1 port " + port + ": Address already in use";
  CHECK_THROWS_WITH(listen("127.0.0.1", listener.port()), taken.c_str());
  CHECK_THROWS_WITH(listen("example.com", 1),
                    "cannot listen on example.com port 1: not a numeric address");
}

}  // namespace
}  // namespace transport::http
