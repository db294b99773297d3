#pragma once

// How calls are made, whatever they are: the key, request ids, the log, what an error says, and the
// repetitions that client.hpp lists.

#include <boost/asio/any_io_executor.hpp>
#include <boost/json.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "sandbox/pandastack/http.hpp"
#include "sandbox/pandastack/settings.hpp"

namespace sandbox::pandastack {

// How long to wait between repetitions; tests are impatient.
struct Patience {
  std::chrono::milliseconds not_found{200};
  std::chrono::milliseconds warm_up_first{500}, warm_up_most{2'000};
  std::chrono::milliseconds unit{1'000};  // a second of Retry-After
  int rate_limited = 5;                   // repetitions after 429
  int no_capacity = 4;                    // repetitions of a create
};

struct Ask {
  std::string purpose;  // "create a sandbox"
  std::string method;
  std::string path;   // below the base: "/sandboxes"; parts that others chose are percent-encoded
  std::string query;  // without "?"; not logged
  Headers headers;
  std::string body;
  std::chrono::milliseconds limit{30'000};  // of each attempt
  std::chrono::seconds silence{0};
  std::uint64_t cap = 4 << 20;
  // What is worth a repetition, besides 429.
  bool not_found_again = false;  // 404
  bool reaches_guest = false;    // warm-up
  bool takes_room = false;       // no capacity
};

// Shared by the client and its calls under way, since the client may go first.
class Caller {
 public:
  Caller(boost::asio::any_io_executor executor, Settings settings, HttpOptions http,
         Patience patience);

  const Settings& settings() const { return settings_; }
  // As Http::close.
  void close() { http_.close(); }

  // The answer's head has come and says yes (below 300). Throws Error.
  awaitable<std::unique_ptr<Answer>> open(const Ask& ask);
  // The whole answer; null when it is empty. Throws Error.
  awaitable<boost::json::value> json(const Ask& ask);
  // That the answer to `ask` is not what it should be.
  Error not_understood(const Ask& ask, const std::string& why) const;

 private:
  awaitable<std::unique_ptr<Answer>> attempt(const Ask& ask);
  Request request(const Ask& ask, const std::string& id) const;
  Error failure(const Ask& ask, const Head& head, std::string body, const std::string& id) const;
  std::string without_key(std::string text) const;

  Settings settings_;
  Patience patience_;
  Http http_;
};

}  // namespace sandbox::pandastack
