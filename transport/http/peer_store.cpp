#include "transport/http/peer_store.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

namespace transport::http {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

constexpr std::size_t kMaxFile = std::size_t{16} << 20;
constexpr std::size_t kMaxDepth = 80;  // a message may be 64 deep, and its capabilities with it
constexpr std::size_t kMaxText = 512;  // of an id or a principal

std::string error_text(int error) { return std::strerror(error); }

// Empty, or what went wrong.
std::string write_synced(const fs::path& path, std::string_view text) {
  int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return error_text(errno);
  int error = 0;
  while (!error && !text.empty()) {
    ssize_t size = write(fd, text.data(), text.size());
    if (size < 0 && errno != EINTR) error = errno;
    if (size > 0) text.remove_prefix(size);
  }
  if (!error && fsync(fd) != 0) error = errno;
  close(fd);
  return error ? error_text(error) : "";
}

json::object to_json(const StoredPeer& peer) {
  json::object out;
  out["id"] = peer.id;
  out["principal"] = peer.principal;
  out["revision"] = mcp::to_string(peer.revision);
  out["capabilities"] = peer.capabilities;
  out["used"] = peer.used.count();
  return out;
}

std::optional<std::string> text_at(const json::object& in, std::string_view key) {
  const json::value* found = in.if_contains(key);
  const json::string* text = found ? found->if_string() : nullptr;
  if (!text || text->empty() || text->size() > kMaxText) return std::nullopt;
  return std::string(*text);
}

std::optional<StoredPeer> from_json(const json::value& value) {
  const json::object* in = value.if_object();
  if (!in) return std::nullopt;
  auto id = text_at(*in, "id"), principal = text_at(*in, "principal");
  auto named = text_at(*in, "revision");
  auto revision = named ? mcp::parse_revision(*named) : std::nullopt;
  const json::value* capabilities = in->if_contains("capabilities");
  const json::value* used = in->if_contains("used");
  bool sound = id && principal && revision && mcp::era_of(*revision) == mcp::Era::legacy &&
               capabilities && capabilities->is_object() && used && used->is_int64();
  if (!sound) return std::nullopt;
  StoredPeer peer;
  peer.id = std::move(*id);
  peer.principal = std::move(*principal);
  peer.revision = *revision;
  peer.capabilities = capabilities->get_object();
  // A clock of another age must not overflow what is computed with it.
  constexpr std::int64_t kLatest = std::int64_t{1} << 33;
  peer.used = std::chrono::seconds(std::clamp<std::int64_t>(used->get_int64(), 0, kLatest));
  return peer;
}

}  // namespace

PeerStore::PeerStore(fs::path directory) : directory_(std::move(directory)) {
  if (directory_.empty()) {
    why_ = "there is no state directory";
    return;
  }
  std::error_code ignored;
  fs::create_directories(directory_.parent_path(), ignored);
  mkdir(directory_.c_str(), 0700);
  struct stat info;
  bool ours = lstat(directory_.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
              info.st_uid == geteuid() && (info.st_mode & 077) == 0;
  if (!ours) {
    why_ = directory_.string() + " is not a directory that is this user's alone (mode 0700)";
    return;
  }
  fs::path lock = directory_ / "mcp-sessions.lock";
  int fd = open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) {
    why_ = lock.string() + ": " + error_text(errno);
  } else if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    why_ = "another server uses " + directory_.string();
  } else {
    lock_fd_ = fd;
  }
}

PeerStore::~PeerStore() {
  if (lock_fd_ >= 0) close(lock_fd_);
}

std::vector<StoredPeer> PeerStore::load() const {
  std::vector<StoredPeer> peers;
  if (!usable()) return peers;
  fs::path path = directory_ / "mcp-sessions.json";
  std::error_code absent;
  auto size = fs::file_size(path, absent);
  if (absent || size > 2 * kMaxFile) return peers;
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  boost::system::error_code malformed;
  json::parse_options options;
  options.max_depth = kMaxDepth;
  json::value all = json::parse(text.str(), malformed, {}, options);
  const json::array* list = malformed ? nullptr : all.if_array();
  if (!list) return peers;
  for (const json::value& one : *list)
    if (auto peer = from_json(one)) peers.push_back(std::move(*peer));
  return peers;
}

std::string PeerStore::save(const std::vector<StoredPeer>& peers) const {
  if (!usable()) return why_;
  std::vector<std::string> newest_first;
  std::size_t size = 0;
  for (auto peer = peers.rbegin(); peer != peers.rend() && size < kMaxFile; ++peer) {
    std::string& line = newest_first.emplace_back(json::serialize(to_json(*peer)));
    size += line.size();
  }
  std::string text = "[";
  for (auto line = newest_first.rbegin(); line != newest_first.rend(); ++line)
    text += (text.size() > 1 ? ",\n" : "") + *line;
  text += "]\n";
  fs::path path = directory_ / "mcp-sessions.json", aside = directory_ / "mcp-sessions.json.new";
  std::string problem = write_synced(aside, text);
  if (problem.empty() && rename(aside.c_str(), path.c_str()) != 0) problem = error_text(errno);
  if (!problem.empty()) problem = path.string() + ": " + problem;
  return problem;
}

}  // namespace transport::http
