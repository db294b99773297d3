// One header's value, token, key set or token file: the first line says which.

#include <cjose/cjose.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <fstream>
#include <stdexcept>

#include "async/task_group.hpp"
#include "tests/fuzz/check.hpp"
#include "transport/http/authentication.hpp"
#include "transport/http/file_headers.hpp"
#include "transport/http/host_policy.hpp"
#include "transport/http/mcp_headers.hpp"

using namespace transport::http;

namespace {

constexpr const char* kIssuer = "https://issuer.example";

void check_refusal(const std::optional<Response>& refusal) {
  if (!refusal) return;
  check(refusal->status == 204 || (refusal->status >= 400 && refusal->status <= 503), "a refusal");
  for (const auto& [name, value] : refusal->headers) check_header(name, value);
  well_formed(boost::json::serialize(refusal->body));
}

class TemporaryFile {
 public:
  TemporaryFile() { close(mkstemp(path_)); }
  ~TemporaryFile() { unlink(path_); }
  const char* path() const { return path_; }
  void write(std::string_view text) { std::ofstream(path_, std::ios::trunc) << text; }

 private:
  char path_[40] = "/dev/shm/pykeep-fuzz-XXXXXX";
};

// An issuer of tokens, and who checks them.
class Issuer {
 public:
  Issuer() {
    cjose_err failure{};
    key_ = cjose_jwk_create_EC_random(CJOSE_JWK_EC_P_256, &failure);
    check(key_ && cjose_jwk_set_kid(key_, "one", 3, &failure), "a key can be made");
    char* json = cjose_jwk_to_json(key_, false, &failure);
    file_.write(std::string("{\"keys\":[") + json + "]}");
    cjose_get_dealloc()(json);
    keys_.emplace(io_.get_executor(), file_.path());
    async::TaskGroup loading(io_.get_executor());
    loading.spawn(load());
    io_.run();
    OAuthOptions options;
    options.issuer = kIssuer;
    options.resource = "https://keep.example/mcp";
    options.scopes = {"run"};
    oauth.emplace(std::move(options), *keys_);
  }

  std::string sign(std::string_view claims) {
    cjose_err failure{};
    cjose_header_t* header = cjose_header_new(&failure);
    cjose_header_set(header, "alg", "ES256", &failure);
    cjose_header_set(header, "kid", "one", &failure);
    auto* bytes = reinterpret_cast<const std::uint8_t*>(claims.data());
    cjose_jws_t* token = cjose_jws_sign(key_, header, bytes, claims.size(), &failure);
    const char* text = nullptr;
    check(token && cjose_jws_export(token, &text, &failure), "a token can be signed");
    std::string compact(text);
    cjose_jws_release(token);
    cjose_header_release(header);
    return compact;
  }

  std::optional<OAuth> oauth;

 private:
  async::awaitable<void> load() {
    bool loaded = co_await keys_->refresh();
    check(loaded, "the issuer's keys are known");
  }

  boost::asio::io_context io_;
  TemporaryFile file_;
  cjose_jwk_t* key_ = nullptr;
  std::optional<JwksSource> keys_;
};

Issuer& issuer() {
  static Issuer one;
  return one;
}

void authorize(Request request) {
  Tokens tokens;
  tokens.add("AQEBAQEBAQIDBAUGBwgJCgsMDQ4PEA");
  Authentication authentication(tokens, &*issuer().oauth);
  auto refusal = authentication.check(request);
  check_refusal(refusal);
  check(refusal.has_value() == request.principal.empty(), "who passes is known by name");
  check_header("principal", request.principal);
}

void authorization(std::string_view text) {
  Request request;
  request.headers.emplace("Authorization", text);
  authorize(std::move(request));
}

void query(std::string_view text) {
  Request request;
  request.query = text;
  authorize(std::move(request));
}

void claims(std::string_view text) {
  if (text.empty()) return;
  OAuth::Verdict verdict = issuer().oauth->check(issuer().sign(text));
  check(verdict.kind == OAuth::Verdict::Kind::accepted || !verdict.problem.empty(), "says why");
  if (verdict.kind == OAuth::Verdict::Kind::accepted)
    check(verdict.principal.starts_with(kIssuer), "a principal of the issuer's");
  check_header("principal", verdict.principal);
}

void jwks(std::string_view text) {
  try {
    Jwks keys(text);
    check(!keys.empty(), "a set has keys");
  } catch (const std::runtime_error&) {
  }
}

void tokens(std::string_view text) {
  static TemporaryFile file;
  file.write(text);
  try {
    Tokens tokens;
    tokens.load(file.path());
  } catch (const std::runtime_error& problem) {
    check_header("problem", problem.what());
  }
}

void range(std::string_view text) {
  for (std::uint64_t size :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1000}, ~std::uint64_t{0}}) {
    auto part = byte_range(text, size);
    if (!part) continue;
    check(part->size == 0 || part->offset < size, "a range begins within its file");
    check(part->size <= size - part->offset, "and ends there");
  }
}

void file_name(std::string_view text) {
  std::string header = attachment(text);
  check_header("Content-Disposition", header);
  check(std::ranges::count(header, '"') == 2, "nothing ends the quotes", header);
  check(inert_type(text).find("html") == std::string_view::npos, "no browser executes it");
}

void host(std::string_view text) {
  Request request;
  request.headers.emplace("Host", cut(text, "\n"));
  if (!text.empty()) request.headers.emplace("Origin", cut(text, "\n"));
  if (!text.empty()) request.headers.emplace("Access-Control-Request-Headers", cut(text, "\n"));
  request.headers.emplace("Access-Control-Request-Method", "POST");
  request.method = "OPTIONS";
  for (const auto& [name, value] : request.headers)
    for (unsigned char c : value)
      if (c < ' ' || c == 0x7f) return;  // the parser's to refuse
  static const HostPolicy policy(
      {"127.0.0.1", {"keep.example", "other:8080"}, {"https://app.example"}});
  check_refusal(policy.check_host(request));
  check_refusal(policy.check_origin(request));
  for (const auto& [name, value] : request.response_headers) check_header(name, value);
}

void mcp_headers(std::string_view text) {
  Request request;
  for (const char* name : {"Accept", "Content-Type", "Content-Length", "Mcp-Method", "Mcp-Name"})
    request.headers.emplace(name, text);
  request.headers.emplace(kVersionHeader, "2026-07-28");
  accepted(request);
  has_json_body(request);
  request.content_length();
  boost::json::object message;
  message["method"] = "tools/call";
  for (const char* method : {"tools/call", "tools/list"}) {
    message["method"] = method;
    if (auto problem = header_mismatch(request, message, {}))
      well_formed(boost::json::serialize(boost::json::value(*problem)));
  }
}

constexpr std::pair<std::string_view, void (*)(std::string_view)> kKinds[] = {
    {"authorization", authorization},
    {"query", query},
    {"claims", claims},
    {"jwks", jwks},
    {"tokens", tokens},
    {"range", range},
    {"file-name", file_name},
    {"host", host},
    {"mcp", mcp_headers},
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  std::string_view text = as_text(data, size), name = cut(text, "\n");
  for (const auto& [kind, run] : kKinds)
    if (kind == name) run(text);
  return 0;
}
