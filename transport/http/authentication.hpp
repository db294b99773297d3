#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "transport/http/exchange.hpp"
#include "transport/http/oauth.hpp"
#include "transport/http/rate_limit.hpp"
#include "transport/http/tokens.hpp"

namespace transport::http {

// Who asks, by `Authorization: Bearer` (RFC 6750): one of the operator's tokens, else a token of
// the OAuth issuer. What it refuses:
//   400  a malformed or repeated header; a token in the query string, where logs would keep it
//   401  no token, or not a valid one, with WWW-Authenticate saying where to get one
//   403  a valid one without the scope that is needed
//   429  instead of 401 and 403, to an address that fails often. A valid token is let in from there
//        all the same: behind a proxy every client has the same address
//   503  a token that cannot be checked, because the issuer's keys could not be fetched yet
// Nothing of a token gets into a message or a log.
class Authentication {
 public:
  // Both outlive it; `oauth` may be null.
  Authentication(const Tokens& tokens, OAuth* oauth);

  // The guard: sets `principal`, or returns the refusal.
  std::optional<Response> check(Request& request);

  // To be awaited before check() sees the request: fetches an issuer's new keys. Returns at once
  // for all but tokens that name an unknown key.
  awaitable<void> prepare(const Request& request);

  std::uint64_t failures() const { return failures_; }

 private:
  std::optional<Response> check_oauth(Request& request, std::string_view token);
  Response refuse(const Request& request, int status, const char* error,
                  const std::string& problem);
  std::string challenge(const char* error, const std::string& problem) const;

  const Tokens& tokens_;
  OAuth* oauth_;
  RateLimit failing_;
  std::uint64_t failures_ = 0;
};

}  // namespace transport::http
