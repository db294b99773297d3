#include "transport/http/authentication.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

namespace transport::http {

namespace {

// From one address: a client that keeps a dead token and reconnects stays below, a search does not.
constexpr double kFailuresPerSecond = 0.5, kFailureBurst = 40;

struct Credentials {
  enum class Kind { none, token, malformed };
  Kind kind = Kind::none;
  std::string_view token;
};

// Schemes compare without regard to case (RFC 9110, section 11.1).
Credentials credentials(const Request& request) {
  if (request.headers.count("authorization") > 1) return {Credentials::Kind::malformed, {}};
  const std::string* header = request.header("authorization");
  if (!header) return {};
  std::string_view text = *header;
  std::string scheme = lower_case(text.substr(0, text.find(' ')));
  if (scheme != "bearer") return {};  // of no use here, and no mistake either
  text.remove_prefix(scheme.size());
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  if (!is_token_text(text)) return {Credentials::Kind::malformed, {}};
  return {Credentials::Kind::token, text};
}

bool has_token_in_query(std::string_view query) {
  return query.starts_with("access_token=") || query.find("&access_token=") != query.npos;
}

}  // namespace

Authentication::Authentication(const Tokens& tokens, OAuth* oauth)
    : tokens_(tokens), oauth_(oauth), failing_(kFailuresPerSecond, kFailureBurst) {}

std::optional<Response> Authentication::check(Request& request) {
  Credentials given = credentials(request);
  if (has_token_in_query(request.query))
    return refuse(request, 400, "invalid_request", "a token belongs into the Authorization header");
  if (given.kind == Credentials::Kind::malformed)
    return refuse(request, 400, "invalid_request",
                  "expected one header `Authorization: Bearer TOKEN`");
  if (given.kind == Credentials::Kind::none)
    return refuse(request, 401, nullptr, "a token is needed");
  if (auto principal = tokens_.principal(given.token)) {
    request.principal = std::move(*principal);
    return std::nullopt;
  }
  if (oauth_) return check_oauth(request, given.token);
  return refuse(request, 401, "invalid_token", "the token is not known");
}

std::optional<Response> Authentication::check_oauth(Request& request, std::string_view token) {
  OAuth::Verdict verdict = oauth_->check(token);
  switch (verdict.kind) {
    case OAuth::Verdict::Kind::accepted:
      request.principal = std::move(verdict.principal);
      return std::nullopt;
    case OAuth::Verdict::Kind::insufficient_scope:
      return refuse(request, 403, "insufficient_scope", "the token: " + verdict.problem);
    case OAuth::Verdict::Kind::no_keys: {
      Response response =
          plain(503, "The issuer's keys could not be fetched; try again in a minute.");
      response.headers.emplace_back("Retry-After", "60");
      return response;
    }
    case OAuth::Verdict::Kind::invalid:
      break;
  }
  return refuse(request, 401, "invalid_token", "the token: " + verdict.problem);
}

awaitable<void> Authentication::prepare(const Request& request) {
  if (!oauth_) co_return;
  Credentials given = credentials(request);
  if (given.kind != Credentials::Kind::token || tokens_.principal(given.token)) co_return;
  std::string token(given.token);
  co_await oauth_->prepare(std::move(token));
}

Response Authentication::refuse(const Request& request, int status, const char* error,
                                const std::string& problem) {
  ++failures_;
  if (auto wait = failing_.take(address_key(request.remote))) return too_many_requests(*wait);
  spdlog::info("refused a request from {}: {}", request.remote, problem);
  Response response = plain(status, problem);
  response.headers.emplace_back("Cache-Control", "no-store");
  response.headers.emplace_back("WWW-Authenticate", challenge(error, problem));
  return response;
}

// RFC 6750, section 3. Without credentials there is no `error` (section 3.1). Texts are ours or
// checked when they were configured: none holds a quote.
std::string Authentication::challenge(const char* error, const std::string& problem) const {
  std::string text = "Bearer realm=\"pykeep\"";
  if (oauth_) text += ", resource_metadata=\"" + oauth_->metadata_url() + "\"";
  if (oauth_ && !oauth_->scope().empty()) text += ", scope=\"" + oauth_->scope() + "\"";
  if (error)
    text += std::string(", error=\"") + error + "\", error_description=\"" + problem + "\"";
  return text;
}

}  // namespace transport::http
