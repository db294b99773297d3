#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "transport/http/exchange.hpp"
#include "transport/http/jwks_fetch.hpp"

namespace transport::http {

// What a resource server is told about itself and its authorization server.
struct OAuthOptions {
  std::string issuer;    // the authorization server; `iss` of its tokens, exactly
  std::string resource;  // the URL clients use for this server: https://host/mcp
  std::string audience;  // what `aud` must contain; empty: `resource`
  std::vector<std::string> authorization_servers;  // for clients; empty: the issuer
  std::vector<std::string> scopes;                 // every token needs all of them
};

// The resource server's part of OAuth 2.1 (MCP 2025-06-18 and later, "Authorization"): which tokens
// it takes, and where clients learn whom to ask for one (RFC 9728). Tokens are JSON Web Tokens of
// one issuer (RFC 9068), checked here; nothing is asked of the issuer but its keys.
class OAuth {
 public:
  struct Verdict {
    enum class Kind {
      accepted,
      invalid,             // 401 invalid_token
      insufficient_scope,  // 403
      no_keys,             // 503: the issuer's keys could not be had yet, so nobody can tell
    };
    Kind kind = Kind::invalid;
    std::string principal;  // accepted: issuer and subject
    std::string problem;    // for the client; names no part of the token
  };

  // Throws std::runtime_error for options that cannot be: no issuer, an issuer or resource that is
  // no URL.
  OAuth(OAuthOptions options, JwksSource& keys);

  Verdict check(std::string_view token,
                std::chrono::system_clock::time_point now = std::chrono::system_clock::now()) const;

  // Fetches the keys if the token's is not among them (see JwksSource::look_for). To be awaited
  // before check(), which does not wait.
  awaitable<void> prepare(std::string token);

  // The document about this resource (RFC 9728, section 2), and the paths it is served at: with the
  // endpoint's path inserted after the well-known one (section 3.1), and at the root.
  std::string metadata() const;
  std::vector<std::string> metadata_paths() const;
  std::string metadata_url() const;
  // The document as it is answered at each of these paths, which need no token.
  Response metadata_response() const;

  std::string scope() const;  // separated by blanks

 private:
  Verdict judge(const boost::json::object& claims, std::chrono::system_clock::time_point now) const;

  OAuthOptions options_;
  JwksSource& keys_;
};

}  // namespace transport::http
