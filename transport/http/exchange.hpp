#pragma once

// The seam between HTTP as bytes (listener, connection: the only users of Beast) and what is served
// over it. A handler sees one Exchange and nothing of the connection below.

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/async.hpp"

namespace transport::http {

using async::awaitable;

// Names compare without regard to case (RFC 9110, section 5.1).
struct NameLess {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const;
};
// ASCII letters only, as HTTP has it.
std::string lower_case(std::string_view text);

using Headers = std::multimap<std::string, std::string, NameLess>;

struct Request {
  std::string method;  // as sent: "POST"
  std::string path;    // as sent, without query; starts with '/'
  std::string query;   // without '?'; empty if absent
  Headers headers;     // values without surrounding blanks; their number and size are bounded
  std::string remote;  // address of the connection's other end
  std::string id;      // of this request, for logs: ours, no two in a process
  // Who asks. Set by the guard before a handler runs; "local" where no token is required.
  std::string principal;
  // What a guard wants on the response, whoever makes it (CORS).
  std::vector<std::pair<std::string, std::string>> response_headers;

  // Null when absent. A header that came twice with different values counts as its first.
  const std::string* header(std::string_view name) const;
  // Of the body, as announced; nullopt if it comes in chunks.
  std::optional<std::uint64_t> content_length() const;
};

struct Response {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;  // sent with its Content-Length
};

// A response that a person or a model can read.
Response plain(int status, std::string text);

// One request and its response. Exactly one of reply() or begin()…end() is called, by the one
// coroutine that handles it; gone() and write() may be called by others that the handler joins. All
// members belong to the loop's thread. Everything throws boost::system::system_error once
// cancelled.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const Request& request() const = 0;
  virtual Request& request() = 0;

  // The whole body; nullopt when it is longer than `limit`, does not arrive in time or is
  // malformed: nothing more of it is read, and the connection closes after the reply, which has
  // body_failure() as its status.
  virtual awaitable<std::optional<std::string>> body(std::size_t limit) = 0;
  virtual int body_failure() const { return 413; }  // or 408, or 400
  // The next part of the body, for what must not be held in memory: 0 at its end. Throws
  // system_error when the client is too slow or gone: the body is then incomplete.
  virtual awaitable<std::size_t> read(std::span<char> buffer) = 0;

  // Sends a whole response. Never throws for a client that is gone.
  virtual awaitable<void> reply(Response response) = 0;

  // Sends the head at once, then a body of unknown length. `head.body` is its first part. With a
  // Content-Length among the headers the body has that length, and is left out for HEAD: an end()
  // before all of it was written closes the connection, by which the client knows.
  virtual awaitable<void> begin(Response head) = 0;
  // Sends a part of it and flushes; returns once it is with the system. False, and nothing more is
  // sent, when the client is gone or did not take it within the write limit (it is then dropped).
  virtual awaitable<bool> write(std::string_view part) = 0;
  virtual awaitable<void> end() = 0;

  // Returns once the client has closed the connection, or it was dropped. Only after the body has
  // been read. A client that closed only its sending side looks the same until it is written to
  // (TCP): it counts as gone, but what is written still reaches it.
  virtual awaitable<void> gone() = 0;
  virtual bool is_gone() const = 0;
};

// Handles one exchange and returns when its response has ended. An exception is our defect: logged,
// and answered with 500 where no response has begun.
using Handler = std::function<awaitable<void>(Exchange&)>;

// Told of what no handler saw, since it was no request or did not arrive in time: what there is of
// it, and the status that it was answered with. Never throws.
using Refused = std::function<void(const Request&, int status)>;

}  // namespace transport::http
