#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mcp/peer.hpp"
#include "transport/http/event_stream.hpp"
#include "transport/http/load.hpp"
#include "transport/http/mcp_limits.hpp"
#include "transport/http/peer_store.hpp"

namespace transport::http {

// A session in MCP's sense, up to 2025-11-25: what an `initialize` over HTTP settled, under the id
// that its client sends along as Mcp-Session-Id. (Not the session that a handle names.)
struct McpSession {
  struct Stream {
    std::shared_ptr<EventStream> events;
    // Since when it is only kept for a client that may come back.
    std::optional<std::chrono::system_clock::time_point> kept_since;
    std::size_t kept_bytes = 0;
  };

  std::string id;
  mcp::Peer peer;
  std::shared_ptr<Load> load;
  std::map<std::string, Stream> streams;  // of its POSTs, by name
  std::shared_ptr<EventStream> general;   // of its GET; null before the first
  std::chrono::system_clock::time_point used;
};

// The MCP sessions by their id. Belongs to the loop's thread.
class Peers {
 public:
  using Clock = std::chrono::system_clock;  // outlives a restart
  using Session = std::shared_ptr<McpSession>;

  Peers(boost::asio::any_io_executor executor, Loads& loads, McpLimits limits);

  // A session that nobody can find yet.
  Session make(const std::string& principal);
  // From now on it is found. False: all others are busy, and there is no room.
  bool admit(Session session);

  // Null: unknown, ended, or another principal's; these cannot be told apart. Counts as a use.
  Session find(const std::string& id, const std::string& principal);
  // Cancels what it has in flight and ends its streams.
  void end(const Session& session);

  // A stream for one POST; `options` without a name.
  std::shared_ptr<EventStream> open_stream(McpSession& session, EventStream::Options options);
  // The stream of the session's GET, made at the first time.
  std::shared_ptr<EventStream> general_stream(McpSession& session);
  // The stream of that name; null if it is not there (any more).
  std::shared_ptr<EventStream> find_stream(const McpSession& session,
                                           const std::string& name) const;
  static bool names_general(const std::string& name);
  // To be called when its request has ended and when its reader left: once both have, it is either
  // of no further use or kept for a while.
  void settle(const Session& session, const std::string& name);

  // Ends the GET streams; what is not read yet still goes out.
  void end_general_streams();

  // Ends what is too old.
  void sweep(Clock::time_point now = Clock::now());

  // For the store: oldest first. restore() skips what is too old, or more than the limits allow.
  std::vector<StoredPeer> snapshot() const;
  void restore(std::vector<StoredPeer> stored, Clock::time_point now = Clock::now());
  // Whether sessions came or went since this was last asked.
  bool take_changed() { return std::exchange(changed_, false); }

  std::size_t size() const { return sessions_.size(); }
  std::size_t kept_bytes() const { return kept_bytes_; }

 private:
  struct Kept {
    std::weak_ptr<McpSession> session;
    std::string name;
  };
  std::string next_name(std::string_view kind);
  std::size_t count(const std::string& principal) const;
  bool make_room(const std::string* principal);
  void keep(const Session& session, const std::string& name, Clock::time_point now);
  void drop(McpSession& session, const std::string& name);

  boost::asio::any_io_executor executor_;
  Loads& loads_;
  McpLimits limits_;
  std::string run_;  // of this process, in the names of streams
  std::uint64_t streams_ = 0;
  std::map<std::string, Session> sessions_;
  std::deque<Kept> kept_;  // oldest first; some are gone already
  std::size_t kept_bytes_ = 0;
  bool changed_ = false;
};

// Cancels every call the peer has in flight; none is answered.
void cancel_calls(mcp::Peer& peer);

}  // namespace transport::http
