#include "transport/http/tokens.hpp"

#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <poll.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <stdexcept>

namespace transport::http {

namespace {

constexpr std::size_t kMaxFile = 1 << 20;
constexpr int kPipeWait = 10'000;  // milliseconds
constexpr std::size_t kMaxPrincipal = 64;
constexpr std::size_t kMinToken = 22;     // 128 bits in base64
constexpr std::size_t kMinHexToken = 32;  // and in hex
constexpr std::size_t kMaxToken = 512;
constexpr std::size_t kMinDifferent =
    8;  // a random token of that length has more, all but certainly
constexpr std::string_view kBlank = " \t\r";

bool is_alphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_hex(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_principal_character(char c) {
  return is_alphanumeric(c) || std::string_view("._@-").find(c) != std::string_view::npos;
}

std::string_view trimmed(std::string_view text) {
  std::size_t first = text.find_first_not_of(kBlank);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

// What is wrong with a token; null: nothing.
const char* problem_with(std::string_view token) {
  if (!is_token_text(token)) return "a token is made of letters, digits and -._~+/";
  if (token.size() > kMaxToken) return "the token is longer than 512 characters";
  bool hex = std::all_of(token.begin(), token.end(), is_hex);
  if (token.size() < (hex ? kMinHexToken : kMinToken))
    return "the token is too short for 128 bits; make one with `openssl rand -base64 32`";
  if (std::set<char>(token.begin(), token.end()).size() < kMinDifferent)
    return "the token is not random; make one with `openssl rand -base64 32`";
  return nullptr;
}

// As read(2), of a pipe as well: that one has a while to begin, but not for ever (EAGAIN).
ssize_t read_some(int fd, char* buffer, std::size_t size) {
  ssize_t got = ::read(fd, buffer, size);
  pollfd state{fd, POLLIN, 0};
  if (got < 0 && errno == EAGAIN && ::poll(&state, 1, kPipeWait) == 1)
    got = ::read(fd, buffer, size);
  return got;
}

// The whole of a small file. Throws std::runtime_error.
std::string contents(const std::filesystem::path& file) {
  auto fail = [&file](const std::string& why) {
    throw std::runtime_error(file.string() + ": " + why);
  };
  int fd = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fail(std::strerror(errno));
  struct stat status {};
  fstat(fd, &status);
  std::string text(kMaxFile + 1, '\0');
  std::size_t size = 0;
  ssize_t got = 0;
  while (size < text.size() && (got = read_some(fd, text.data() + size, text.size() - size)) > 0)
    size += got;
  int failure = errno;
  close(fd);
  if (got < 0) fail(std::strerror(failure));
  if (size > kMaxFile) fail("larger than 1 MiB");
  bool is_file = S_ISREG(status.st_mode);
  if (is_file && (status.st_mode & (S_IWGRP | S_IWOTH)))
    fail("others may write to it, so its tokens cannot be trusted; chmod 600 it");
  if (is_file && (status.st_mode & S_IROTH))
    spdlog::warn("{}: everybody may read these tokens; chmod o-r it", file.string());
  text.resize(size);
  return text;
}

struct Line {
  std::string_view principal, token;
};

// Throws std::runtime_error without a word of the line itself.
Line split(std::string_view line) {
  auto end = std::find_if_not(line.begin(), line.end(), is_principal_character);
  std::size_t size = end - line.begin();
  std::string_view rest = line.substr(size);
  bool colon = trimmed(rest).starts_with(':');
  if (size == 0 || rest.empty() || (!colon && kBlank.find(rest.front()) == kBlank.npos))
    throw std::runtime_error("expected `principal: token`, the principal of [A-Za-z0-9._@-]");
  if (size > kMaxPrincipal) throw std::runtime_error("the principal is longer than 64 characters");
  std::string_view token = trimmed(rest);
  if (colon) token = trimmed(token.substr(1));
  if (const char* problem = problem_with(token)) throw std::runtime_error(problem);
  return {line.substr(0, size), token};
}

}  // namespace

Digest sha256(std::string_view text) {
  Digest digest;
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return digest;
}

bool is_token_text(std::string_view token) {
  while (token.ends_with('=')) token.remove_suffix(1);
  auto allowed = [](char c) {
    return is_alphanumeric(c) || std::string_view("-._~+/").find(c) != std::string_view::npos;
  };
  return !token.empty() && std::all_of(token.begin(), token.end(), allowed);
}

void Tokens::load(std::filesystem::path file) {
  from_file_ = read(file);
  file_ = std::move(file);
}

void Tokens::add(std::string_view token) {
  if (const char* problem = problem_with(token)) throw std::runtime_error(problem);
  added_.push_back({"token", sha256(token)});
}

void Tokens::reload() {
  if (!file_.empty()) from_file_ = read(file_);
}

std::optional<std::string> Tokens::principal(std::string_view token) const {
  Digest digest = sha256(token);
  const Entry* found = nullptr;
  // All of them are compared: where the match is must not show in the time.
  for (const auto* entries : {&from_file_, &added_})
    for (const Entry& entry : *entries)
      if (CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) found = &entry;
  if (!found) return std::nullopt;
  return found->principal;
}

std::vector<Tokens::Entry> Tokens::read(const std::filesystem::path& file) {
  std::string text = contents(file);
  std::vector<Entry> entries;
  std::string_view rest = text;
  for (int number = 1; !rest.empty(); ++number) {
    std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.empty() || line.starts_with('#')) continue;
    try {
      Line parts = split(line);
      Digest digest = sha256(parts.token);
      for (const Entry& entry : entries)
        if (entry.digest == digest && entry.principal != parts.principal)
          throw std::runtime_error("the same token was given to another principal above");
      entries.push_back({std::string(parts.principal), digest});
    } catch (const std::runtime_error& problem) {
      throw std::runtime_error(file.string() + ":" + std::to_string(number) + ": " +
                               problem.what());
    }
  }
  if (entries.empty()) throw std::runtime_error(file.string() + ": there is no token in it");
  return entries;
}

}  // namespace transport::http
