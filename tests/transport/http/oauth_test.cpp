#include "transport/http/oauth.hpp"

#include <doctest/doctest.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rsa.h>
#include <stdlib.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>
#include <fstream>
#include <stdexcept>

#include "async/task_group.hpp"
#include "transport/http/authentication.hpp"

using namespace transport::http;
namespace json = boost::json;

namespace {

constexpr const char* kIssuer = "https://issuer.example";
constexpr const char* kResource = "https://keep.example/mcp";
constexpr std::int64_t kNow = 1'800'000'000;

std::string base64url(std::string_view bytes) {
  std::string text(4 * (bytes.size() / 3 + 1) + 1, '\0');
  auto* in = reinterpret_cast<const unsigned char*>(bytes.data());
  int size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()), in,
                             static_cast<int>(bytes.size()));
  text.resize(size);
  while (text.ends_with('=')) text.pop_back();
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return text;
}

using Key = std::shared_ptr<EVP_PKEY>;

Key rsa_key(unsigned bits = 2048) { return Key(EVP_RSA_gen(bits), EVP_PKEY_free); }
Key ec_key(const char* curve = "P-256") { return Key(EVP_EC_gen(curve), EVP_PKEY_free); }

std::string number_of(const Key& key, const char* name, std::size_t size = 0) {
  BIGNUM* value = nullptr;
  REQUIRE(EVP_PKEY_get_bn_param(key.get(), name, &value) == 1);
  std::string bytes(std::max<std::size_t>(size, BN_num_bytes(value)), '\0');
  BN_bn2binpad(value, reinterpret_cast<unsigned char*>(bytes.data()),
               static_cast<int>(bytes.size()));
  BN_free(value);
  return base64url(bytes);
}

json::object public_jwk(const Key& key, const char* kid) {
  json::object jwk;
  if (kid) jwk["kid"] = kid;
  if (EVP_PKEY_get_base_id(key.get()) == EVP_PKEY_RSA) {
    jwk["kty"] = "RSA";
    jwk["n"] = number_of(key, OSSL_PKEY_PARAM_RSA_N);
    jwk["e"] = number_of(key, OSSL_PKEY_PARAM_RSA_E);
    return jwk;
  }
  std::size_t size = (EVP_PKEY_get_bits(key.get()) + 7) / 8;
  jwk["kty"] = "EC";
  jwk["crv"] = size == 32 ? "P-256" : size == 48 ? "P-384" : "P-521";
  jwk["x"] = number_of(key, OSSL_PKEY_PARAM_EC_PUB_X, size);
  jwk["y"] = number_of(key, OSSL_PKEY_PARAM_EC_PUB_Y, size);
  return jwk;
}

const EVP_MD* hash_of(std::string_view algorithm) {
  if (algorithm.ends_with("384")) return EVP_sha384();
  return algorithm.ends_with("512") ? EVP_sha512() : EVP_sha256();
}

// ECDSA's r and s at their full length, one after the other (RFC 7518, section 3.4).
std::string plain_ecdsa(const std::string& der, std::size_t size) {
  auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
  ECDSA_SIG* signature = d2i_ECDSA_SIG(nullptr, &bytes, static_cast<long>(der.size()));
  std::string plain(2 * size, '\0');
  auto* out = reinterpret_cast<unsigned char*>(plain.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(signature), out, static_cast<int>(size));
  BN_bn2binpad(ECDSA_SIG_get0_s(signature), out + size, static_cast<int>(size));
  ECDSA_SIG_free(signature);
  return plain;
}

std::string signature(const Key& key, std::string_view algorithm, const std::string& text) {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  EVP_PKEY_CTX* parameters = nullptr;
  EVP_DigestSignInit(context, &parameters, hash_of(algorithm), nullptr, key.get());
  if (algorithm.starts_with("PS")) {
    EVP_PKEY_CTX_set_rsa_padding(parameters, RSA_PKCS1_PSS_PADDING);
    EVP_PKEY_CTX_set_rsa_pss_saltlen(parameters, RSA_PSS_SALTLEN_DIGEST);
  }
  auto* in = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t size = 0;
  EVP_DigestSign(context, nullptr, &size, in, text.size());
  std::string signed_text(size, '\0');
  auto* out = reinterpret_cast<unsigned char*>(signed_text.data());
  REQUIRE(EVP_DigestSign(context, out, &size, in, text.size()) == 1);
  EVP_MD_CTX_free(context);
  signed_text.resize(size);
  bool is_ec = EVP_PKEY_get_base_id(key.get()) == EVP_PKEY_EC;
  return is_ec ? plain_ecdsa(signed_text, (EVP_PKEY_get_bits(key.get()) + 7) / 8) : signed_text;
}

json::object header(const char* algorithm, const char* kid) {
  json::object header;
  header["alg"] = algorithm;
  header["typ"] = "at+jwt";
  if (kid) header["kid"] = kid;
  return header;
}

json::object good_claims() {
  json::object claims;
  claims["iss"] = kIssuer;
  claims["sub"] = "alice";
  claims["aud"] = kResource;
  claims["exp"] = kNow + 300;
  claims["iat"] = kNow;
  claims["scope"] = "openid python:run";
  return claims;
}

std::string unsigned_token(const json::value& header, const json::value& claims) {
  return base64url(json::serialize(header)) + "." + base64url(json::serialize(claims));
}

std::string token(const Key& key, const json::object& header, const json::value& claims) {
  std::string text = unsigned_token(header, claims);
  std::string algorithm = json::value_to<std::string>(header.at("alg"));
  return text + "." + base64url(signature(key, algorithm, text));
}

// Claims that differ from good ones in one place; null takes it away.
json::object but(const char* name, json::value value) {
  json::object claims = good_claims();
  if (value.is_null())
    claims.erase(name);
  else
    claims[name] = std::move(value);
  return claims;
}

// An issuer's keys in a file, and a resource server that has read them.
struct Server {
  explicit Server(json::array keys, std::vector<std::string> scopes = {"python:run"})
      : file(write(keys)),
        source(io.get_executor(), file),
        oauth(options(std::move(scopes)), source) {
    async::TaskGroup tasks(io.get_executor());
    tasks.spawn(refresh(source));
    io.run();
  }
  ~Server() { unlink(file.c_str()); }

  OAuth::Verdict check(const std::string& text, std::int64_t at = kNow) const {
    return oauth.check(text, std::chrono::system_clock::time_point(std::chrono::seconds(at)));
  }

  static std::string write(const json::array& keys) {
    char name[] = "/tmp/pykeep-jwks-XXXXXX";
    close(mkstemp(name));
    json::object document;
    document["keys"] = keys;
    std::ofstream(name) << json::serialize(document);
    return name;
  }
  static OAuthOptions options(std::vector<std::string> scopes) {
    OAuthOptions options;
    options.issuer = kIssuer;
    options.resource = kResource;
    options.scopes = std::move(scopes);
    return options;
  }
  static async::awaitable<void> refresh(JwksSource& source) { co_await source.refresh(); }

  boost::asio::io_context io;
  std::string file;
  JwksSource source;
  OAuth oauth;
};

json::array one_key(const Key& key, const char* kid) {
  json::array keys;
  keys.push_back(public_jwk(key, kid));
  return keys;
}

using Kind = OAuth::Verdict::Kind;

}  // namespace

TEST_CASE("tokens of every accepted algorithm") {
  Key rsa = rsa_key();
  struct Row {
    const char* algorithm;
    Key key;
  };
  for (const Row& row : {Row{"RS256", rsa}, Row{"RS384", rsa}, Row{"RS512", rsa}, Row{"PS256", rsa},
                         Row{"PS384", rsa}, Row{"PS512", rsa}, Row{"ES256", ec_key("P-256")},
                         Row{"ES384", ec_key("P-384")}, Row{"ES512", ec_key("P-521")}}) {
    CAPTURE(row.algorithm);
    Server server(one_key(row.key, "one"));
    auto verdict = server.check(token(row.key, header(row.algorithm, "one"), good_claims()));
    CHECK(verdict.problem == "");
    CHECK(verdict.kind == Kind::accepted);
    CHECK(verdict.principal == "https://issuer.example#alice");
  }
}

TEST_CASE("claims decide who is let in") {
  Key key = ec_key();
  Server server(one_key(key, "one"));
  json::array audiences;
  audiences.emplace_back("https://other.example");
  audiences.emplace_back(kResource);
  json::array scopes;
  scopes.emplace_back("python:run");
  json::array listed;  // what is to be one text, in a list
  listed.emplace_back(kIssuer);
  struct Row {
    const char* name;
    json::object claims;
    const char* problem;  // empty: accepted
  };
  for (const Row& row : {
           Row{"good", good_claims(), ""},
           Row{"several audiences", but("aud", audiences), ""},
           Row{"scp as a list", but("scp", scopes), ""},
           Row{"expired within the leeway", but("exp", kNow - 59), ""},
           Row{"valid soon enough", but("nbf", kNow + 60), ""},
           Row{"fractional time", but("exp", 0.5 + kNow), ""},
           Row{"another issuer", but("iss", "https://issuer.example/"), "of another issuer"},
           Row{"no issuer", but("iss", nullptr), "of another issuer"},
           Row{"issuers", but("iss", json::array{kIssuer, kIssuer}), "of another issuer"},
           Row{"an issuer in a list", but("iss", listed), "of another issuer"},
           Row{"a subject in a list", but("sub", listed), "does not say whose it is"},
           Row{"another audience", but("aud", "https://keep.example/"),
               "not made out for this server"},
           Row{"no audience", but("aud", nullptr), "not made out for this server"},
           Row{"expired", but("exp", kNow - 60), "has expired"},
           Row{"never expires", but("exp", nullptr), "does not say when it expires"},
           Row{"expiry is text", but("exp", "1900000000"), "does not say when it expires"},
           Row{"not yet", but("nbf", kNow + 61), "not valid yet"},
           Row{"begins some time", but("nbf", "soon"), "not valid yet"},
           Row{"nobody's", but("sub", nullptr), "does not say whose it is"},
           Row{"of an empty name", but("sub", ""), "does not say whose it is"},
           Row{"of two lines", but("sub", "a\nb"), "does not say whose it is"},
           Row{"of a long name", but("sub", json::string(std::string(256, 'a'))),
               "does not say whose it is"},
       }) {
    CAPTURE(row.name);
    auto verdict = server.check(token(key, header("ES256", "one"), row.claims));
    CHECK(verdict.kind == (*row.problem ? Kind::invalid : Kind::accepted));
    CHECK(verdict.problem.find(row.problem) != std::string::npos);
  }
}

TEST_CASE("a scope that lacks is told apart from a token that is not valid") {
  Key key = ec_key();
  Server server(one_key(key, "one"));
  for (const char* scopes : {"", "python", "python:run2 openid", "PYTHON:RUN"}) {
    CAPTURE(scopes);
    auto verdict = server.check(token(key, header("ES256", "one"), but("scope", scopes)));
    CHECK(verdict.kind == Kind::insufficient_scope);
  }
  auto other = server.check(token(key, header("ES256", "one"), but("scope", nullptr)));
  CHECK(other.kind == Kind::insufficient_scope);
}

TEST_CASE("what is not signed as it must be is refused") {
  Key key = rsa_key(), stranger = rsa_key(), curve = ec_key();
  json::array keys = one_key(key, "one");
  keys.push_back(public_jwk(curve, "curve"));
  keys.push_back(public_jwk(key, "bound"));
  keys.back().as_object()["alg"] = "PS256";
  Server server(keys);
  std::string good = token(key, header("RS256", "one"), good_claims());
  std::size_t dot = good.rfind('.');

  json::object none = header("none", "one");
  json::object critical = header("RS256", "one");
  critical["crit"] = json::array{"b64"};
  json::object id_token = header("RS256", "one");
  id_token["typ"] = "logout+jwt";
  std::string hmac_text = unsigned_token(header("HS256", "one"), good_claims());
  std::string secret = json::serialize(public_jwk(key, "one"));  // public, so anybody can sign so
  unsigned char hmac[32];
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(hmac_text.data()), hmac_text.size(), hmac, nullptr);
  std::string hmac_token =
      hmac_text + "." + base64url(std::string_view(reinterpret_cast<char*>(hmac), sizeof hmac));
  std::string other_claims = unsigned_token(header("RS256", "one"), but("sub", "root"));

  struct Row {
    const char* name;
    std::string text;
  };
  for (const Row& row : {
           Row{"nothing", ""},
           Row{"an opaque token", "c2VjcmV0"},
           Row{"dots", ".."},
           Row{"no signature", good.substr(0, dot)},
           Row{"an empty signature", good.substr(0, dot + 1)},
           Row{"half a signature", good.substr(0, dot + 40)},
           Row{"a fourth part", good + ".e30"},
           Row{"padding", good + "="},
           Row{"padding at a place where none can be", good.substr(0, dot) + ".AAAAA==="},
           Row{"longer than any", std::string(20'000, 'a') + good},
           Row{"alg none", unsigned_token(none, good_claims()) + "."},
           Row{"alg none with a signature", unsigned_token(none, good_claims()) + good.substr(dot)},
           Row{"HMAC with the public key", hmac_token},
           Row{"other claims, same signature", other_claims + good.substr(dot)},
           Row{"a stranger's signature", token(stranger, header("RS256", "one"), good_claims())},
           Row{"a key of another type", token(key, header("RS256", "curve"), good_claims())},
           Row{"a curve for RSA's kid", token(curve, header("ES256", "one"), good_claims())},
           Row{"a key bound to another algorithm",
               token(key, header("RS256", "bound"), good_claims())},
           Row{"an unknown kid", token(key, header("RS256", "two"), good_claims())},
           Row{"no kid, two keys fit", token(key, header("PS256", nullptr), good_claims())},
           Row{"an extension", token(key, critical, good_claims())},
           Row{"another kind of token", token(key, id_token, good_claims())},
           Row{"claims that are no object", token(key, header("RS256", "one"), json::array{1})},
       }) {
    CAPTURE(row.name);
    auto verdict = server.check(row.text);
    CHECK(verdict.kind == Kind::invalid);
    CHECK(verdict.problem != "");
    CHECK(verdict.principal == "");
  }
  CHECK(server.check(good).kind == Kind::accepted);
  // Without a kid, exactly one key fits ES256.
  CHECK(server.check(token(curve, header("ES256", nullptr), good_claims())).kind == Kind::accepted);
}

TEST_CASE("key sets that cannot be used") {
  auto with = [](json::object jwk) {
    return json::serialize(json::object{{"keys", json::array{jwk}}});
  };
  json::object symmetric{{"kty", "oct"}, {"k", "AAAA"}, {"kid", "s"}};
  json::object encryption = public_jwk(ec_key(), "e");
  encryption["use"] = "enc";
  json::object broken = public_jwk(ec_key(), "b");
  broken["x"] = broken["y"];
  json::object padded = public_jwk(rsa_key(), "p");
  padded["n"] = "AAAAA===";
  json::object many;
  many["keys"] = json::array(65, json::value(public_jwk(ec_key(), "m")));
  struct Row {
    const char* name;
    std::string document;
  };
  for (const Row& row : {
           Row{"not JSON", "<html>"},
           Row{"no object", "[]"},
           Row{"no keys", "{}"},
           Row{"keys that are none", R"({"keys":[1]})"},
           Row{"empty", R"({"keys":[]})"},
           Row{"symmetric", with(symmetric)},
           Row{"for encryption", with(encryption)},
           Row{"not on its curve", with(broken)},
           Row{"padding at a place where none can be", with(padded)},
           Row{"a short RSA key", with(public_jwk(rsa_key(1024), "short"))},
           Row{"too many", json::serialize(many)},
           Row{"too large", std::string(300 << 10, ' ')},
       }) {
    CAPTURE(row.name);
    CHECK_THROWS_AS(Jwks(row.document), std::runtime_error);
  }
}

TEST_CASE("without keys nobody can tell, and keys that go bad stay as they were") {
  Key key = ec_key();
  std::string good = token(key, header("ES256", "one"), good_claims());
  Server none(json::array{});
  CHECK(none.check(good).kind == Kind::no_keys);
  Server server(one_key(key, "one"));
  std::ofstream(server.file) << "gone";
  server.io.restart();
  async::TaskGroup tasks(server.io.get_executor());
  tasks.spawn(Server::refresh(server.source));
  server.io.run();
  CHECK(server.check(good).kind == Kind::accepted);
}

TEST_CASE("a key that is new is looked for, but not at every token") {
  Key old_key = ec_key(), new_key = ec_key();
  Server server(one_key(old_key, "old"));
  std::ofstream(server.file) << json::serialize(json::object{{"keys", one_key(new_key, "new")}});
  std::string text = token(new_key, header("ES256", "new"), good_claims());
  auto prepare = [&](JwksSource& source) {
    OAuth oauth(Server::options({}), source);
    server.io.restart();
    async::TaskGroup tasks(server.io.get_executor());
    tasks.spawn(oauth.prepare(text));
    server.io.run();
    return oauth.check(text, std::chrono::system_clock::time_point(std::chrono::seconds(kNow)))
        .kind;
  };
  CHECK(prepare(server.source) == Kind::invalid);  // its last fetch was a moment ago
  JwksTimes hurried;
  hurried.retry = std::chrono::seconds(0);
  JwksSource source(server.io.get_executor(), server.file, hurried);
  CHECK(prepare(source) == Kind::accepted);
}

TEST_CASE("where keys may come from") {
  boost::asio::io_context io;
  struct Row {
    const char* url;
    bool taken;
  };
  for (const Row& row : {
           Row{"https://issuer.example/jwks", true},
           Row{"https://issuer.example:8443/jwks?a=b", true},
           Row{"http://127.0.0.1:80/jwks", true},
           Row{"http://[::1]:80/jwks", true},
           Row{"http://localhost/jwks", true},
           Row{"http://issuer.example/jwks", false},
           Row{"http://127.0.0.1.evil.example/jwks", false},
           Row{"https://user@issuer.example/", false},
           Row{"https:///jwks", false},
           Row{"https://issuer.example/a b", false},
           Row{"ftp://issuer.example/", false},
       }) {
    CAPTURE(row.url);
    if (row.taken)
      CHECK_NOTHROW(JwksSource(io.get_executor(), row.url));
    else
      CHECK_THROWS_AS(JwksSource(io.get_executor(), row.url), std::runtime_error);
  }
}

TEST_CASE("clients learn where tokens come from") {
  Key key = ec_key();
  Server server(one_key(key, "one"));
  json::object document = json::parse(server.oauth.metadata()).as_object();
  CHECK(document["resource"] == kResource);
  CHECK(document["authorization_servers"] == json::array{kIssuer});
  CHECK(document["scopes_supported"] == json::array{"python:run"});
  CHECK(document["bearer_methods_supported"] == json::array{"header"});
  std::string place = "https://keep.example/.well-known/oauth-protected-resource/mcp";
  CHECK(server.oauth.metadata_url() == place);
  std::vector<std::string> paths{"/.well-known/oauth-protected-resource",
                                 "/.well-known/oauth-protected-resource/mcp"};
  CHECK(server.oauth.metadata_paths() == paths);

  Tokens tokens;
  Authentication authentication(tokens, &server.oauth);
  struct Row {
    std::string authorization;
    int status;
    const char* error;
  };
  std::string unscoped = "Bearer " + token(key, header("ES256", "one"), [] {
                           json::object claims = but("scope", "other");
                           claims["exp"] = std::int64_t{4'000'000'000};
                           return claims;
                         }());
  for (const Row& row : {Row{"", 401, nullptr}, Row{"Bearer nonsense", 401, "invalid_token"},
                         Row{unscoped, 403, "insufficient_scope"}}) {
    CAPTURE(row.status);
    Request request;
    request.remote = "192.0.2.1";
    if (!row.authorization.empty()) request.headers.emplace("authorization", row.authorization);
    auto refusal = authentication.check(request);
    REQUIRE(refusal);
    CHECK(refusal->status == row.status);
    std::string challenge;
    for (const auto& [name, value] : refusal->headers)
      if (name == "WWW-Authenticate") challenge = value;
    CHECK(challenge.find("resource_metadata=\"" + place + "\"") != challenge.npos);
    CHECK(challenge.find("scope=\"python:run\"") != challenge.npos);
    bool has_error = challenge.find("error=") != challenge.npos;
    CHECK(has_error == (row.error != nullptr));
    if (row.error) CHECK(challenge.find(row.error) != challenge.npos);
  }
}
