// Files below /files/, over an exchange without a network. What tickets mean is tested with the
// tools (tickets_test.cpp), all of it together in end_to_end/test_transfers.py.

#include "transport/http/transfers.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/system/system_error.hpp>
#include <map>

#include "async/async.hpp"

namespace http = transport::http;
using async::awaitable;

namespace {

// A request with its body in pieces of three bytes, and what was answered.
class Exchange final : public http::Exchange {
 public:
  Exchange(std::string method, std::string path, std::string body = "") : body_(std::move(body)) {
    request_.method = std::move(method);
    request_.path = std::move(path);
  }
  const http::Request& request() const override { return request_; }
  http::Request& request() override { return request_; }
  awaitable<std::optional<std::string>> body(std::size_t) override { co_return body_; }
  int body_failure() const override { return 408; }
  awaitable<std::size_t> read(std::span<char> buffer) override {
    if (breaks_off && read_ >= body_.size() / 2)
      throw boost::system::system_error(boost::asio::error::eof);
    std::size_t size = std::min({buffer.size(), body_.size() - read_, std::size_t{3}});
    std::copy_n(body_.begin() + static_cast<std::ptrdiff_t>(read_), size, buffer.begin());
    read_ += size;
    co_return size;
  }
  awaitable<void> reply(http::Response response) override {
    answer = std::move(response);
    co_return;
  }
  awaitable<void> begin(http::Response head) override {
    answer = std::move(head);
    co_return;
  }
  awaitable<bool> write(std::string_view part) override {
    answer.body += part;
    co_return ++writes != leaves_after;
  }
  awaitable<void> end() override {
    ended = true;
    co_return;
  }
  awaitable<void> gone() override { co_return; }
  bool is_gone() const override { return false; }

  Exchange& with(const char* name, const char* value) {
    request_.headers.emplace(name, value);
    return *this;
  }
  std::string header(std::string_view name) const {
    for (const auto& [key, value] : answer.headers)
      if (key == name) return value;
    return "";
  }

  http::Response answer{0, {}, {}};
  bool breaks_off = false;
  bool ended = false;
  int writes = 0, leaves_after = -1;

 private:
  http::Request request_;
  std::string body_;
  std::size_t read_ = 0;
};

// Files in memory: the ticket is the name.
struct Shelf final : http::Transfers {
  class Writer final : public http::Upload {
   public:
    Writer(Shelf& shelf, std::string name) : shelf_(shelf), name_(std::move(name)) {}
    awaitable<void> write(std::string_view part) override {
      bytes_ += part;
      if (bytes_.size() > 10) throw http::TransferError(413, "more than 10 bytes");
      co_return;
    }
    awaitable<std::string> finish() override {
      shelf_.files[name_] = bytes_;
      co_return "stored " + name_;
    }

   private:
    Shelf& shelf_;
    std::string name_, bytes_;
  };
  class Reader final : public http::Download {
   public:
    Reader(Shelf& shelf, std::string name) : shelf_(shelf), name_(std::move(name)) {}
    std::string name() const override { return name_; }
    std::uint64_t size() const override {
      return shelf_.files.at(name_).size() + shelf_.was_longer;
    }
    std::string version() const override { return "v1"; }
    awaitable<std::string> read(std::uint64_t offset, std::size_t size) override {
      co_return shelf_.files.at(name_).substr(offset, size);
    }

   private:
    Shelf& shelf_;
    std::string name_;
  };

  awaitable<std::unique_ptr<http::Upload>> upload(std::string ticket,
                                                  std::optional<std::uint64_t> size) override {
    announced = size;
    if (ticket.empty()) throw http::TransferError(404, "no such ticket");
    if (files.contains(ticket)) throw http::TransferError(405, "GET it");
    co_return std::make_unique<Writer>(*this, ticket);
  }
  awaitable<std::unique_ptr<http::Download>> download(std::string ticket) override {
    if (!files.contains(ticket)) throw http::TransferError(404, "no such ticket");
    co_return std::make_unique<Reader>(*this, ticket);
  }

  std::map<std::string, std::string> files;
  std::optional<std::uint64_t> announced;
  std::size_t was_longer = 0;  // than what can be read
};

struct Server {
  explicit Server(std::size_t at_once = 64) { http::mount(router, shelf, at_once); }
  Exchange& serve(Exchange& exchange) {
    boost::asio::io_context io(1);
    std::exception_ptr failure;
    boost::asio::co_spawn(io, router.handle(exchange),
                          [&](std::exception_ptr thrown) { failure = thrown; });
    io.run();
    if (failure) std::rethrow_exception(failure);
    return exchange;
  }
  Exchange serve(const char* method, const std::string& path, const char* header = nullptr,
                 const char* value = nullptr, std::string body = "") {
    Exchange exchange(method, path, std::move(body));
    if (header) exchange.with(header, value);
    serve(exchange);
    return exchange;
  }

  Shelf shelf;
  http::Router router;
};

}  // namespace

TEST_CASE("what is PUT is there once it is whole") {
  Server server;
  Exchange whole("PUT", "/files/a", "0123456789");
  CHECK(server.serve(whole.with("Content-Length", "10")).answer.status == 201);
  CHECK(whole.answer.body == "stored a\n");
  CHECK(server.shelf.announced == 10);
  CHECK(server.shelf.files["a"] == "0123456789");

  Exchange half("PUT", "/files/b", "0123456789");
  half.breaks_off = true;
  CHECK(server.serve(half).answer.status == 408);
  CHECK(!server.shelf.announced);
  CHECK(!server.shelf.files.contains("b"));
}

TEST_CASE("a PUT that cannot be is refused with the reason") {
  Server server;
  server.shelf.files["old"] = "x";
  struct Row {
    const char *path, *header, *value;
    std::string body;
    int status;
  };
  for (const Row& row :
       {Row{"/files/new", nullptr, nullptr, "0123456789A", 413},
        Row{"/files/", nullptr, nullptr, "x", 404}, Row{"/files/old", nullptr, nullptr, "x", 405},
        Row{"/files/new", "Content-Range", "bytes 0-0/2", "x", 400},
        Row{"/files/new", "Content-Encoding", "gzip", "x", 415}}) {
    CAPTURE(row.status);
    Exchange exchange = server.serve("PUT", row.path, row.header, row.value, row.body);
    CHECK(exchange.answer.status == row.status);
    CHECK(exchange.answer.body.size() > 5);
    CHECK(exchange.header("Allow") == (row.status == 405 ? "GET, HEAD" : ""));
    CHECK(server.shelf.files.size() == 1);
  }
}

TEST_CASE("only so many files at once") {
  Server server(0);
  server.shelf.files["a"] = "x";
  CHECK(server.serve("PUT", "/files/b", nullptr, nullptr, "x").answer.status == 503);
  CHECK(server.serve("GET", "/files/a").header("Retry-After") == "2");
}

TEST_CASE("a file is fetched whole or in part") {
  Server server;
  server.shelf.files["a.html"] = "0123456789";
  struct Row {
    const char *range, *condition;
    int status;
    const char *body, *content_range, *length;
  };
  for (const Row& row : {
           Row{nullptr, nullptr, 200, "0123456789", "", "10"},
           Row{"bytes=2-4", nullptr, 206, "234", "bytes 2-4/10", "3"},
           Row{"bytes=-1", nullptr, 206, "9", "bytes 9-9/10", "1"},
           Row{"bytes=2-4", "\"v1\"", 206, "234", "bytes 2-4/10", "3"},
           Row{"bytes=2-4", "\"v0\"", 200, "0123456789", "", "10"},
           Row{"bytes=2-4", "W/\"v1\"", 200, "0123456789", "", "10"},
           Row{"bytes=0-1,3-4", nullptr, 200, "0123456789", "", "10"},
           Row{"bytes=10-", nullptr, 416, "The file has 10 bytes.\n", "bytes */10", ""},
       }) {
    CAPTURE(row.range);
    Exchange exchange("GET", "/files/a.html");
    if (row.range) exchange.with("Range", row.range);
    if (row.condition) exchange.with("If-Range", row.condition);
    server.serve(exchange);
    CHECK(exchange.answer.status == row.status);
    CHECK(exchange.answer.body == row.body);
    CHECK(exchange.header("Content-Range") == row.content_range);
    CHECK(exchange.header("Content-Length") == row.length);
    CHECK(exchange.header("X-Content-Type-Options") == "nosniff");
    if (row.status == 416) continue;
    CHECK(exchange.ended);
    CHECK(exchange.header("ETag") == "\"v1\"");
    CHECK(exchange.header("Accept-Ranges") == "bytes");
    CHECK(exchange.header("Content-Type") == "application/octet-stream");
    CHECK(exchange.header("Content-Disposition").starts_with("attachment; filename=\"a.html\""));
  }
}

TEST_CASE("HEAD tells the length and sends nothing") {
  Server server;
  server.shelf.files["a"] = "0123456789";
  Exchange head = server.serve("HEAD", "/files/a", "Range", "bytes=0-1");
  CHECK(head.answer.status == 200);
  CHECK(head.header("Content-Length") == "10");
  CHECK(head.answer.body.empty());
  CHECK(server.serve("HEAD", "/files/b").answer.status == 404);
}

TEST_CASE("a file that was cut short, or a client that left, ends it") {
  Server server;
  server.shelf.files["a"] = "0123456789";
  server.shelf.was_longer = 5;
  Exchange cut = server.serve("GET", "/files/a");
  CHECK(cut.header("Content-Length") == "15");
  CHECK(cut.answer.body == "0123456789");
  CHECK(cut.ended);

  server.shelf.files["large"] = std::string(1 << 20, 'x');
  Exchange leaver("GET", "/files/large");
  leaver.leaves_after = 2;
  CHECK(server.serve(leaver).writes == 2);
}

TEST_CASE("no other verb, and nothing below a ticket") {
  Server server;
  server.shelf.files["a"] = "x";
  CHECK(server.serve("POST", "/files/a").answer.status == 405);
  CHECK(server.serve("DELETE", "/files/a").header("Allow") == "GET, HEAD, PUT");
  CHECK(server.serve("GET", "/files/../a").answer.status == 404);
}
