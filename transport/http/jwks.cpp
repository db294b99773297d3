#include "transport/http/jwks.hpp"

#include <cjose/cjose.h>
#include <openssl/err.h>

#include <algorithm>
#include <boost/json.hpp>
#include <stdexcept>

#include "schemas/parse.hpp"
#include "transport/http/exchange.hpp"

namespace transport::http {

namespace json = boost::json;

namespace {

constexpr std::size_t kMaxToken = 16 << 10;
constexpr std::size_t kMinRsaBits = 2048, kMaxRsaBits = 8192;  // beyond, a check takes milliseconds

// Which keys an algorithm takes (RFC 7518, section 3.1).
struct Algorithm {
  const char* name;
  const char* type;
  const char* curve;
};
constexpr Algorithm kAlgorithms[] = {
    {"RS256", "RSA", ""},     {"RS384", "RSA", ""},     {"RS512", "RSA", ""},
    {"PS256", "RSA", ""},     {"PS384", "RSA", ""},     {"PS512", "RSA", ""},
    {"ES256", "EC", "P-256"}, {"ES384", "EC", "P-384"}, {"ES512", "EC", "P-521"},
};

const Algorithm* find_algorithm(std::string_view name) {
  for (const Algorithm& algorithm : kAlgorithms)
    if (name == algorithm.name) return &algorithm;
  return nullptr;
}

std::string text_of(const json::object& object, const char* name) {
  const json::value* value = object.if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

// RFC 7515, section 2: without padding. cjose is lenient about that, and in some versions a `=` at
// the wrong place ends the process by an assertion (0.6.2.1, base64.c: shift != 1).
bool is_base64url(char c) {
  bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  return alphanumeric || c == '-' || c == '_';
}

// The numbers of an RSA or EC key (RFC 7518, sections 6.2 and 6.3).
constexpr const char* kNumbers[] = {"n", "e", "d", "p", "q", "dp", "dq", "qi", "x", "y"};

// OpenSSL keeps the failures of a thread until somebody looks at them.
struct ErrorQueue {
  ~ErrorQueue() { ERR_clear_error(); }
};

std::shared_ptr<cjose_jwk_t> import_key(const json::object& entry) {
  for (const char* name : kNumbers)
    if (!std::ranges::all_of(text_of(entry, name), is_base64url)) return nullptr;
  ErrorQueue errors;
  std::string text = json::serialize(entry);
  cjose_err failure{};
  auto release = [](cjose_jwk_t* key) {
    if (key) cjose_jwk_release(key);
  };
  return {cjose_jwk_import(text.data(), text.size(), &failure), release};
}

json::object parse_object(std::string_view text, const char* problem) {
  boost::system::error_code malformed;
  json::value value = schemas::parse(text, malformed);
  if (malformed || !value.is_object()) throw std::runtime_error(problem);
  return std::move(value.get_object());
}

// A text in the token's header; empty if absent or something else.
std::string header_text(cjose_jws_t* token, const char* name) {
  cjose_err failure{};
  const char* text = cjose_header_get(cjose_jws_get_protected(token), name, &failure);
  return text ? text : "";
}

bool has_header(cjose_jws_t* token, const char* name) {
  cjose_err failure{};
  char* raw = cjose_header_get_raw(cjose_jws_get_protected(token), name, &failure);
  std::unique_ptr<char, cjose_dealloc_fn_t> owned(raw, cjose_get_dealloc());
  return owned != nullptr;
}

// "at+jwt" is an access token's (RFC 9068), "JWT" what older servers write. Others, as of a logout
// token, are not made to be shown to us (RFC 8725, section 3.11).
bool is_access_token_type(std::string_view named) {
  std::string type = lower_case(named);
  return type.empty() || type == "jwt" || type == "at+jwt" || type == "application/at+jwt";
}

}  // namespace

Jwks::Jwks(std::string_view document) {
  if (document.size() > kMaxDocument)
    throw std::runtime_error("the key set is larger than 256 KiB");
  json::object object = parse_object(document, "the key set is not a JSON object");
  const json::value* entries = object.if_contains("keys");
  if (!entries || !entries->is_array()) throw std::runtime_error("the key set has no array `keys`");
  if (entries->get_array().size() > kMaxKeys) throw std::runtime_error("more than 64 keys");
  for (const json::value& entry : entries->get_array()) {
    if (!entry.is_object()) throw std::runtime_error("the key set has a key that is no object");
    if (auto key = read(entry.get_object())) keys_.push_back(std::move(*key));
  }
  if (keys_.empty()) throw std::runtime_error("the key set has no RSA or EC key for signatures");
}

std::optional<Jwks::Key> Jwks::read(const json::object& entry) {
  Key key;
  key.type = text_of(entry, "kty");
  key.curve = text_of(entry, "crv");
  key.kid = text_of(entry, "kid");
  key.algorithm = text_of(entry, "alg");
  std::string use = text_of(entry, "use");
  bool signs = use.empty() || use == "sig";
  bool known = key.algorithm.empty() || find_algorithm(key.algorithm);
  if (!signs || !known || (key.type != "RSA" && key.type != "EC")) return std::nullopt;
  auto imported = import_key(entry);
  if (!imported) throw std::runtime_error("the key `" + key.kid + "` cannot be read");
  cjose_err failure{};
  std::size_t bits = cjose_jwk_get_keysize(imported.get(), &failure);
  if (key.type == "RSA" && (bits < kMinRsaBits || bits > kMaxRsaBits))
    throw std::runtime_error("the RSA key `" + key.kid + "` has not 2048 to 8192 bits");
  key.key = std::move(imported);
  return key;
}

bool Jwks::has(std::string_view kid) const {
  return std::any_of(keys_.begin(), keys_.end(), [kid](const Key& key) { return key.kid == kid; });
}

SignedToken::SignedToken(std::string_view compact) {
  if (compact.size() > kMaxToken) throw std::runtime_error("it is longer than 16 KiB");
  if (!std::ranges::all_of(compact, [](char c) { return is_base64url(c) || c == '.'; }))
    throw std::runtime_error("it is not a signed JSON Web Token");
  ErrorQueue errors;
  cjose_err failure{};
  token_.reset(cjose_jws_import(compact.data(), compact.size(), &failure), [](cjose_jws_t* token) {
    if (token) cjose_jws_release(token);
  });
  if (!token_) throw std::runtime_error("it is not a signed JSON Web Token");
  algorithm_ = header_text(token_.get(), "alg");
  kid_ = header_text(token_.get(), "kid");
  if (!find_algorithm(algorithm_)) throw std::runtime_error("its algorithm is not accepted");
  if (!is_access_token_type(header_text(token_.get(), "typ")))
    throw std::runtime_error("it is not an access token");
  // An extension we do not understand must not be ignored (RFC 7515, section 4.1.11).
  if (has_header(token_.get(), "crit"))
    throw std::runtime_error("it needs an extension that is not known");
}

const Jwks::Key* SignedToken::key_among(const std::vector<Jwks::Key>& keys) const {
  const Algorithm& algorithm = *find_algorithm(algorithm_);
  auto fits = [&algorithm](const Jwks::Key& key) {
    bool bound = key.algorithm.empty() || key.algorithm == algorithm.name;
    return bound && key.type == algorithm.type && key.curve == algorithm.curve;
  };
  const Jwks::Key* found = nullptr;
  for (const Jwks::Key& key : keys) {
    if (kid_.empty() ? !fits(key) : key.kid != kid_) continue;
    if (found && kid_.empty()) return nullptr;  // no way to tell which
    if (!found || fits(key)) found = &key;
  }
  if (found && !fits(*found)) throw std::runtime_error("its key is for another algorithm");
  return found;
}

std::optional<json::object> SignedToken::claims(const Jwks& keys) const {
  const Jwks::Key* key = key_among(keys.keys_);
  if (!key) return std::nullopt;
  ErrorQueue errors;
  cjose_err failure{};
  std::uint8_t* payload = nullptr;
  std::size_t size = 0;
  if (!cjose_jws_verify(token_.get(), key->key.get(), &failure) ||
      !cjose_jws_get_plaintext(token_.get(), &payload, &size, &failure))
    throw std::runtime_error("its signature is wrong");
  std::string_view text(reinterpret_cast<char*>(payload), size);  // the token's
  return parse_object(text, "its claims are not a JSON object");
}

}  // namespace transport::http
