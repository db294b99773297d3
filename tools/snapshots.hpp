#pragma once

#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/snapshot_store.hpp"
#include "tools/sessions.hpp"

namespace tools {

// How a snapshot is named to its owner: its id, and the name that was given.
std::string title(const sandbox::SnapshotRecord& record);

// What the policy grants them all together.
sandbox::SnapshotLimits snapshot_limits(const SessionPolicy& policy);

// Snapshots of sessions: made, restored as new sessions or in place, deleted. What refuses throws
// ToolError, and everything is as it was then.
class Snapshots {
 public:
  // All of it outlives this.
  Snapshots(boost::asio::thread_pool& pool, sandbox::Backend& backend,
            sandbox::SnapshotStore& store, Sessions& sessions);

  struct Taken {
    sandbox::SnapshotRecord record;
    std::chrono::microseconds pause;  // how long the kernel stood still
  };
  // Once what runs in the session has ended. `allow_lost`: without descriptors that cannot be
  // carried, which the record then lists.
  awaitable<Taken> take(std::shared_ptr<Session> session, std::string name, bool allow_lost);

  struct Restored {
    sandbox::SnapshotRecord record;
    std::shared_ptr<Session> session;
  };
  // Without a session, a new one begins with the snapshot; else that one goes back to it.
  awaitable<Restored> restore(std::string principal, std::string snapshot,
                              std::optional<std::string> session);

  awaitable<void> remove(const std::string& principal, const std::string& snapshot);
  // Newest first.
  awaitable<std::vector<sandbox::SnapshotRecord>> list(const std::string& principal);

  // Deletes those that are too old (SessionPolicy::snapshot_keep), and what was left unfinished.
  awaitable<void> sweep();
  // The same now and then, until cancelled.
  awaitable<void> expire();

 private:
  awaitable<sandbox::SnapshotHold> hold(const std::string& principal, const std::string& snapshot);
  awaitable<std::shared_ptr<Session>> target(const sandbox::SnapshotRecord& record,
                                             const std::optional<std::string>& handle);
  awaitable<sandbox::SnapshotStore::Removal> remove_all(const std::string& principal,
                                                        const std::string& snapshot);
  awaitable<void> discard(sandbox::SnapshotHold draft);
  awaitable<void> expire(const sandbox::SnapshotRecord& snapshot);

  boost::asio::thread_pool& pool_;
  sandbox::Backend& backend_;
  sandbox::SnapshotStore& store_;
  Sessions& sessions_;
};

}  // namespace tools
