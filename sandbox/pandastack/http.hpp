#pragma once

// HTTP for the client of the PandaStack API: libcurl, loaded when it is first needed, on one thread
// of its own. What is asked for and what comes of it cross between that thread and the event loop
// as messages.

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "async/async.hpp"
#include "sandbox/pandastack/errors.hpp"

namespace sandbox::pandastack {

using async::awaitable;

using Headers = std::vector<std::pair<std::string, std::string>>;

inline constexpr std::uint64_t kNoCap = UINT64_MAX;

struct Request {
  std::string purpose;  // begins the text of errors: "PandaStack could not list sandboxes"
  std::string method = "GET";
  std::string url;   // http or https, complete
  Headers headers;   // neither names nor values may have control characters: std::invalid_argument
  std::string body;  // POST, PUT and PATCH send one even when it is empty (411 otherwise)
  std::chrono::milliseconds limit{30'000};  // for all of it, the last byte of the answer included
  // Ends it when no byte has come or gone for so long; whole seconds, 0: only `limit` counts. Not
  // while the reader of the answer is what holds it up.
  std::chrono::seconds silence{0};
  std::uint64_t cap = 4 << 20;  // bytes of the answer's body; more is Failure::too_large
};

struct Head {
  int status = 0;
  Headers headers;  // names in lower case

  const std::string* find(std::string_view lower_case_name) const;  // null: not there
};

struct Response : Head {
  std::string body;
};

class Call;       // a request under way (call.hpp)
class Transfers;  // all of them, on their thread (transfers.hpp)

// An answer whose head has come and whose body is read as it comes. At most 1 MiB waits in memory
// for its reader (of HTTP/2, libcurl's window of 32 MiB besides); then the server waits. Destroying
// it before the end closes the connection (of HTTP/2: the stream), from which the server may learn
// that nobody listens any more.
class Answer {
 public:
  explicit Answer(std::shared_ptr<Call> call);
  Answer(const Answer&) = delete;
  Answer& operator=(const Answer&) = delete;
  ~Answer();

  const Head& head() const;
  // The next bytes, never empty; nullopt at the end of the body. Throws Error, also when the body
  // ends before its end: what had come before was returned. A cancelled call loses nothing.
  awaitable<std::optional<std::string>> read();

 private:
  std::shared_ptr<Call> call_;
};

struct HttpOptions {
  std::chrono::milliseconds connect_limit{10'000};  // name, connection, proxy and TLS together
  // Certificates to trust, PEM; empty: those of the system. (Verification is always on.)
  std::string ca_file;
};

// Connections are kept and shared by all calls. HTTP/2 where it is offered over TLS. Redirects are
// not followed. Nothing is sent twice, not even by libcurl when a kept connection turns out to be
// dead after the request was written; but GET, HEAD and DELETE may be. http_proxy, HTTPS_PROXY,
// NO_PROXY and the like are honoured, ~/.netrc and cookies are not.
class Http {
 public:
  // Throws StartError when there is no libcurl.so.4 of version 7.85 or later, with the package to
  // install.
  Http(boost::asio::any_io_executor executor, HttpOptions options);
  Http(const Http&) = delete;
  Http& operator=(const Http&) = delete;
  ~Http();

  // Ends everything: calls that wait, reads of their answers, and calls made from now on throw
  // Error (closed). Returns within milliseconds. The destructor does it, too.
  void close();

  // Returns when the head of the answer has come, whatever its status. Throws Error, whose outcome
  // is `refused` if the request was not sent. A cancelled call is given up.
  awaitable<std::unique_ptr<Answer>> open(Request request);
  // The whole answer.
  awaitable<Response> send(Request request);

 private:
  boost::asio::any_io_executor executor_;
  std::shared_ptr<Transfers> transfers_;
};

}  // namespace sandbox::pandastack
