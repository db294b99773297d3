#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "async/async.hpp"
#include "transport/http/jwks.hpp"

namespace transport::http {

using async::awaitable;

// The body of an answer 200 to a GET of `url`: https with the system's certificates (or those in
// SSL_CERT_FILE), always verified; http only to this machine's own loopback. Redirects are not
// followed, and what is longer than `max_bytes` is refused. Throws std::exception. Whoever calls it
// limits its time; looking up a name can go on for the resolver's own time limits after that.
awaitable<std::string> fetch(std::string url, std::size_t max_bytes);

struct JwksTimes {
  std::chrono::milliseconds fetch{10'000};  // for one fetch, all in all
  std::chrono::seconds retry{60};           // at least, between two that an unknown key asks for
  std::chrono::seconds renew{3600};         // how long withdrawn keys may still be believed
};

// The keys an authorization server signs with, kept current. From a file, or from a URL as fetch()
// takes it. All members belong to the loop's thread.
class JwksSource {
 public:
  // Throws std::runtime_error for a URL that is neither https nor http to loopback.
  JwksSource(boost::asio::any_io_executor executor, std::string where, JwksTimes times = {});

  const Jwks& keys() const { return keys_; }

  // Fetches now. A failure is logged, and the keys stay as they were. True when they are new.
  awaitable<bool> refresh();

  // Fetches when `kid` is unknown and the last fetch is `retry` ago; those who ask meanwhile wait
  // for the same one.
  awaitable<void> look_for(std::string kid);

  // Fetches every `renew` (after a failure: `retry`) until cancelled.
  awaitable<void> keep_current();

 private:
  awaitable<std::optional<std::string>> document();

  std::string where_;
  JwksTimes times_;
  Jwks keys_;
  async::Turn turn_;
  std::optional<std::chrono::steady_clock::time_point> asked_;  // when the last fetch began
};

}  // namespace transport::http
