#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mcp/call.hpp"
#include "sandbox/snapshot_store.hpp"
#include "tools/session.hpp"

namespace tools {

struct SessionPolicy {
  std::string default_name;    // --session: the default session is this durable one; may be empty
  std::string default_python;  // name of the template sessions start from
  bool allow_network = false;
  sandbox::Limits limits;
  std::vector<std::pair<std::string, std::string>> environment;
  std::size_t max_live = 32;                 // sessions with a kernel, in total
  std::size_t max_live_per_principal = 32;   // and of one principal
  std::size_t max_sessions = 256;            // held by this process, with a kernel or without
  std::chrono::seconds idle_timeout{900};    // without use, then the kernel is put on disk
  std::chrono::seconds session_ttl{3600};    // without use, then one that could not be is stopped
  std::chrono::seconds keep{7 * 24 * 3600};  // without use, then the session is deleted
  std::uint64_t disk = 8ull << 30;           // of snapshots, and of all sessions nobody runs
  CheckpointPolicy checkpoints;
  std::chrono::seconds snapshot_keep{0};  // since it was made, then it is deleted; 0: never
  std::size_t max_snapshots = 100;        // of one principal
  // What another process runs may be on its way to disk: a client that starts its server anew does
  // not wait for the old one's end. So long it is waited for.
  std::chrono::milliseconds hand_over{3000};
};

// Finds the Python environment of a name. Throws sandbox::StartError with the remedy.
using FindPython = std::function<sandbox::Template(const std::string& name)>;

// Every session of this process, and which of them a call means.
class Sessions {
 public:
  Sessions(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool,
           sandbox::Backend& backend, sandbox::SessionStore& store,
           const sandbox::SnapshotStore& snapshots, SessionPolicy policy, FindPython find_python,
           Observer* observer = nullptr);

  // The session a call means, first match: the handle; the transport's session; the conversation
  // that a known host names in _meta; the process default (stdio). A session that is not there yet
  // is created, one that another process left is taken over, and its next result says so. A handle
  // that is unknown, somebody else's or busy throws ToolError: never a silent fresh kernel.
  awaitable<std::shared_ptr<Session>> resolve(const mcp::Call& call,
                                              const std::optional<std::string>& handle);

  struct Wish {
    std::string name;
    std::string python;
    bool network = false;
    std::string conversation;  // hash of the key that shall find it; may be empty
    // What has become of its variables if this process dies before they are there.
    std::optional<std::string> ended;
  };
  // Throws ToolError: too many sessions, no such template, network not allowed, name taken, disk.
  awaitable<std::shared_ptr<Session>> create(const std::string& principal, const Wish& wish);

  struct Found {
    std::shared_ptr<Session> session;
    std::shared_ptr<Run> run;
  };
  // Throws ToolError for an unknown id.
  Found find_execution(const std::string& principal, const std::string& execution_id) const;
  // Null when it is not this principal's, or not held by this process.
  std::shared_ptr<Session> find(const std::string& principal, const std::string& handle) const;

  // The same, but one on disk is taken over.
  awaitable<std::shared_ptr<Session>> reach(const std::string& principal,
                                            const std::string& handle);
  // The same, but never null: throws ToolError with what the caller can do.
  awaitable<std::shared_ptr<Session>> open_or_explain(const std::string& principal,
                                                      const std::string& handle);

  std::vector<std::shared_ptr<Session>> live(const std::string& principal) const;
  // Those on disk that this process does not hold.
  awaitable<std::vector<sandbox::SessionRecord>> stored(const std::string& principal);

  awaitable<void> close(const std::string& principal, const std::string& handle);

  // Puts idle kernels on disk or stops them, and sweeps what is too old, until cancelled.
  awaitable<void> expire();

  // Ends every kernel, after putting it on disk where that can be done within `freeze_limit`; what
  // was used, has a name or files stays. Takes about a second besides; called when no call is left.
  awaitable<void> shutdown(std::chrono::milliseconds freeze_limit = kShutdownFreeze);
  // Over stdio, clients give a server two seconds (app/stdio.cpp).
  static constexpr std::chrono::milliseconds kShutdownFreeze{1200};

  const SessionPolicy& policy() const { return policy_; }
  sandbox::Capabilities capabilities() const { return backend_.capabilities(); }

  // Of this process, whosever they are: for the metrics.
  std::size_t held() const { return by_handle_.size(); }
  std::size_t kernels() const;
  std::size_t running() const;  // with a cell that runs or waits

 private:
  enum class Held { absent, elsewhere, here };
  struct Opened {
    Held held = Held::absent;
    std::shared_ptr<Session> session;  // when here
  };
  // Finds a session by handle or name, among ours and then on disk.
  awaitable<Opened> open(const std::string& principal, const std::string& handle);
  // Between two looks at what another process still runs.
  static constexpr std::chrono::milliseconds kLook{50};
  awaitable<Opened> open_when_free(const std::string& principal, const std::string& handle);
  using Look = std::function<sandbox::SessionStore::Lookup()>;
  awaitable<Opened> open_stored(Look look);
  // Both: null while another process runs it, unless a fresh one may take its place.
  awaitable<std::shared_ptr<Session>> find_default(const mcp::Call& call, const std::string& key,
                                                   bool fresh_instead);
  awaitable<std::shared_ptr<Session>> make_default(const mcp::Call& call,
                                                   const std::string& conversation,
                                                   bool fresh_instead);
  std::string conversation_of(const mcp::Call& call, const std::string& key) const;
  awaitable<std::shared_ptr<Session>> make(const std::string& principal, const Wish& wish);
  std::shared_ptr<Session> adopt(sandbox::SessionLease lease);
  void leave(std::shared_ptr<Session> session, bool keep, std::chrono::milliseconds freeze_limit);
  static awaitable<void> close_now(std::shared_ptr<Session> session, bool keep,
                                   std::chrono::milliseconds freeze_limit);
  awaitable<void> rest(std::shared_ptr<Session> session, std::chrono::seconds unused);
  bool images_work() const;
  bool is_worth_keeping(const Session& session) const;
  awaitable<void> sweep();
  void admit_session();
  void admit_kernel(const std::string& principal) const;
  std::string names(const std::string& principal) const;

  boost::asio::any_io_executor executor_;
  boost::asio::thread_pool& pool_;
  sandbox::Backend& backend_;
  sandbox::SessionStore& store_;
  const sandbox::SnapshotStore& snapshots_;  // sessions on disk get what it leaves of the room
  SessionPolicy policy_;
  FindPython find_python_;
  Observer* observer_;
  std::string process_;  // tells the default session of this process from those of others
  async::Turn opening_;  // one session is made or taken over at a time
  std::map<std::string, std::shared_ptr<Session>> by_handle_;
  std::map<std::string, std::string> defaults_;  // key of a conversation -> handle
  async::TaskGroup
      leaving_;  // sessions that are being closed, whatever becomes of who asked for it
};

}  // namespace tools
