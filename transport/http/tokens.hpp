#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace transport::http {

using Digest = std::array<unsigned char, 32>;

Digest sha256(std::string_view text);

// The bearer tokens an operator handed out, each naming a principal. Only their SHA-256 is kept,
// and looking one up takes the same time whichever it is, or none.
//
// The file has a line for each token, `principal: token` or `principal token`; blank lines and
// lines that start with # are skipped, and one principal may have several tokens (to change them
// without a gap). A principal is 1 to 64 of [A-Za-z0-9._@-]. A token is 22 to 512 characters of
// base64, base64url or hex (32 then): shorter ones hold less than 128 bits and are refused, so are
// ones that are plainly not random.
class Tokens {
 public:
  // Takes the file's tokens. Throws std::runtime_error that names the file, the line and what is
  // wrong there, never a token; nothing has changed then. A file that others may write to is
  // refused; one that everybody may read is logged as a warning (Docker's and Kubernetes' secrets
  // are such).
  void load(std::filesystem::path file);
  // One more token, of the principal "token"; from the environment, say. Throws as load().
  void add(std::string_view token);

  // Reads the file again, if there is one. Throws as load() and then keeps what it had.
  void reload();

  bool empty() const { return size() == 0; }
  std::size_t size() const { return from_file_.size() + added_.size(); }

  // Whose token it is; nullopt when it is nobody's.
  std::optional<std::string> principal(std::string_view token) const;

 private:
  struct Entry {
    std::string principal;
    Digest digest;
  };
  static std::vector<Entry> read(const std::filesystem::path& file);

  std::filesystem::path file_;  // may be empty
  std::vector<Entry> from_file_, added_;
};

// The characters of a bearer token (RFC 6750, section 2.1: b64token).
bool is_token_text(std::string_view token);

}  // namespace transport::http
