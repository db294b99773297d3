#pragma once

// The MCP sessions on disk, so that they outlive a restart: most clients never recover from an id
// that is no longer known.
//
//   <directory>/mcp-sessions.json   all of them, replaced as a whole
//   <directory>/mcp-sessions.lock   flock'ed by the process that uses it
//
// The directory is 0700: an id is half of a secret. All functions block; save() is for a pool.

#include <boost/json.hpp>
#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "mcp/era.hpp"

namespace transport::http {

struct StoredPeer {
  std::string id;
  std::string principal;
  mcp::Revision revision = mcp::kNewestLegacy;
  boost::json::object capabilities;
  std::chrono::seconds used{0};  // since the epoch
};

class PeerStore {
 public:
  // An empty path, a directory that cannot be used and one that another process uses make a store
  // that holds nothing: why() says so, for the log.
  explicit PeerStore(std::filesystem::path directory);
  ~PeerStore();
  PeerStore(const PeerStore&) = delete;
  PeerStore& operator=(const PeerStore&) = delete;

  bool usable() const { return lock_fd_ >= 0; }
  const std::string& why() const { return why_; }

  // Oldest first. What is not whole and sound is skipped, a damaged file holds nothing.
  std::vector<StoredPeer> load() const;
  // The old file stands until the new one is written and synced. Beyond 16 MiB the oldest are left
  // out. Returns what went wrong; empty if nothing.
  std::string save(const std::vector<StoredPeer>& peers) const;

 private:
  std::filesystem::path directory_;
  int lock_fd_ = -1;
  std::string why_;
};

}  // namespace transport::http
