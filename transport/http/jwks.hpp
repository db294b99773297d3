#pragma once

#include <boost/json/object.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

struct _cjose_jwk_int;
struct _cjose_jws_int;

namespace transport::http {

// A set of public keys (JWKS, RFC 7517) that tokens are signed with. RSA and EC keys for RS256,
// PS256, ES256 and their 384 and 512 kin; keys of other kinds and for other uses are skipped, among
// them every symmetric one.
class Jwks {
 public:
  static constexpr std::size_t kMaxDocument = 256 << 10;
  static constexpr std::size_t kMaxKeys = 64;

  Jwks() = default;
  // Throws std::runtime_error that says what is wrong with the document: not JSON, without a usable
  // key, an RSA key below 2048 bits or above 8192.
  explicit Jwks(std::string_view document);

  bool empty() const { return keys_.empty(); }
  bool has(std::string_view kid) const;

 private:
  friend class SignedToken;
  struct Key {
    std::string kid, type, curve, algorithm;  // `algorithm` is empty when the key is bound to none
    std::shared_ptr<const _cjose_jwk_int> key;
  };
  static std::optional<Key> read(const boost::json::object& entry);

  std::vector<Key> keys_;
};

// A JSON Web Token as it came (JWS compact form, RFC 7515), not yet to be believed.
class SignedToken {
 public:
  // Throws std::runtime_error when it is not of this form, or its algorithm is not one of Jwks:
  // `none` and HMAC never are. The reason names no part of the token.
  explicit SignedToken(std::string_view compact);

  const std::string& kid() const { return kid_; }  // empty if absent

  // The claims, if one of the keys has signed them. Nullopt if no key has this kid (without a kid:
  // if not exactly one key fits the algorithm). Throws std::runtime_error when the signature is
  // wrong or the claims are no JSON object.
  std::optional<boost::json::object> claims(const Jwks& keys) const;

 private:
  const Jwks::Key* key_among(const std::vector<Jwks::Key>& keys) const;

  std::shared_ptr<_cjose_jws_int> token_;
  std::string algorithm_, kid_;
};

}  // namespace transport::http
