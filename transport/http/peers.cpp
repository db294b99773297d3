#include "transport/http/peers.hpp"

#include <algorithm>

#include "mcp/random_id.hpp"

namespace transport::http {

namespace asio = boost::asio;

namespace {

constexpr std::string_view kGeneral = "get-";
constexpr std::string_view kOfPost = "post-";

bool has_calls(const McpSession& session) { return session.load->requests() > 0; }
bool has_reader(const McpSession& session) { return session.general && session.general->is_read(); }

}  // namespace

void cancel_calls(mcp::Peer& peer) {
  auto calls = peer.in_flight;  // a call may leave the map while its signal is emitted
  for (const auto& [id, call] : calls) {
    call->cancelled = true;
    call->signal.emit(asio::cancellation_type::terminal);
  }
}

Peers::Peers(asio::any_io_executor executor, Loads& loads, McpLimits limits)
    : executor_(executor), loads_(loads), limits_(limits), run_(mcp::random_id().substr(0, 12)) {}

Peers::Session Peers::make(const std::string& principal) {
  auto session = std::make_shared<McpSession>();
  session->id = mcp::random_id();
  session->peer.principal = principal;
  session->peer.transport_session = session->id;
  session->load = std::make_shared<Load>(limits_.requests_per_session,
                                         limits_.request_bytes_per_session, loads_.of(principal));
  session->used = Clock::now();
  return session;
}

bool Peers::admit(Session session) {
  const std::string& principal = session->peer.principal;
  bool full = count(principal) >= limits_.sessions_per_principal;
  if (full && !make_room(&principal)) return false;
  if (sessions_.size() >= limits_.sessions && !make_room(nullptr)) return false;
  sessions_[session->id] = std::move(session);
  changed_ = true;
  return true;
}

std::size_t Peers::count(const std::string& principal) const {
  auto theirs = [&](const auto& entry) { return entry.second->peer.principal == principal; };
  return std::ranges::count_if(sessions_, theirs);
}

// Ends the session that was idle for longest, of this principal or of all; one without an open
// stream if there is any.
bool Peers::make_room(const std::string* principal) {
  Session oldest;
  auto rank = [](const McpSession& one) { return std::pair(has_reader(one), one.used); };
  for (const auto& [id, session] : sessions_) {
    if (has_calls(*session) || (principal && session->peer.principal != *principal)) continue;
    if (!oldest || rank(*session) < rank(*oldest)) oldest = session;
  }
  if (!oldest) return false;
  end(oldest);
  return true;
}

Peers::Session Peers::find(const std::string& id, const std::string& principal) {
  auto found = sessions_.find(id);
  if (found == sessions_.end() || found->second->peer.principal != principal) return nullptr;
  found->second->used = Clock::now();
  return found->second;
}

void Peers::end(const Session& given) {
  Session session = given;  // may be the map's own
  changed_ |= sessions_.erase(session->id) > 0;
  cancel_calls(session->peer);
  if (session->general) session->general->close();
  while (!session->streams.empty()) {
    session->streams.begin()->second.events->close();
    drop(*session, session->streams.begin()->first);
  }
}

std::string Peers::next_name(std::string_view kind) {
  return std::string(kind) + run_ + "-" + std::to_string(++streams_);
}

std::shared_ptr<EventStream> Peers::open_stream(McpSession& session, EventStream::Options options) {
  options.name = next_name(kOfPost);
  auto events = std::make_shared<EventStream>(executor_, options);
  session.streams[options.name].events = events;
  return events;
}

std::shared_ptr<EventStream> Peers::general_stream(McpSession& session) {
  if (!session.general) {
    EventStream::Options options;
    options.name = next_name(kGeneral);
    options.unread = limits_.unread_bytes;
    options.kept = limits_.kept_bytes;
    session.general = std::make_shared<EventStream>(executor_, options);
  }
  return session.general;
}

void Peers::end_general_streams() {
  for (const auto& [id, session] : sessions_)
    if (session->general) session->general->finish();
}

bool Peers::names_general(const std::string& name) { return name.starts_with(kGeneral); }

std::shared_ptr<EventStream> Peers::find_stream(const McpSession& session,
                                                const std::string& name) const {
  if (session.general && session.general->name() == name) return session.general;
  auto found = session.streams.find(name);
  return found == session.streams.end() ? nullptr : found->second.events;
}

void Peers::settle(const Session& session, const std::string& name) {
  auto found = session->streams.find(name);
  if (found == session->streams.end()) return;
  const McpSession::Stream& stream = found->second;
  if (!stream.events->ended() || stream.events->is_read() || stream.kept_since) return;
  if (stream.events->is_named())
    keep(session, name, Clock::now());
  else
    drop(*session, name);
}

void Peers::keep(const Session& session, const std::string& name, Clock::time_point now) {
  McpSession::Stream& stream = session->streams.at(name);
  stream.kept_since = now;
  stream.kept_bytes = stream.events->bytes();
  kept_bytes_ += stream.kept_bytes;
  kept_.push_back({session, name});

  auto is_kept = [](const auto& entry) { return entry.second.kept_since.has_value(); };
  auto older = [](const auto& a, const auto& b) {
    return a.second.kept_since.value_or(Clock::time_point::max()) <
           b.second.kept_since.value_or(Clock::time_point::max());
  };
  auto& streams = session->streams;
  if (std::ranges::count_if(streams, is_kept) > static_cast<std::ptrdiff_t>(limits_.kept_streams)) {
    std::string oldest = std::ranges::min_element(streams, older)->first;
    drop(*session, oldest);
  }
  while (kept_bytes_ > limits_.kept_streams_bytes && !kept_.empty()) {
    Kept oldest = std::move(kept_.front());
    kept_.pop_front();
    if (Session owner = oldest.session.lock()) drop(*owner, oldest.name);
  }
}

void Peers::drop(McpSession& session, const std::string& name) {
  auto found = session.streams.find(name);
  if (found == session.streams.end()) return;
  kept_bytes_ -= found->second.kept_bytes;
  session.streams.erase(found);
}

void Peers::sweep(Clock::time_point now) {
  std::vector<Session> expired;
  for (const auto& [id, session] : sessions_) {
    if (has_calls(*session) || has_reader(*session)) session->used = now;
    if (now - session->used > limits_.session_idle) expired.push_back(session);
    std::vector<std::string> old;
    for (const auto& [name, stream] : session->streams) {
      bool received = stream.events->read_to_the_end() && !stream.events->is_read();
      if (stream.kept_since && received && now - *stream.kept_since > limits_.kept_for)
        old.push_back(name);
    }
    for (const std::string& name : old) drop(*session, name);
  }
  for (const Session& session : expired) end(session);
  std::erase_if(kept_, [](const Kept& kept) {
    Session session = kept.session.lock();
    return !session || !session->streams.contains(kept.name);
  });
}

std::vector<StoredPeer> Peers::snapshot() const {
  std::vector<StoredPeer> stored;
  for (const auto& [id, session] : sessions_) {
    StoredPeer one;
    one.id = id;
    one.principal = session->peer.principal;
    one.revision = session->peer.legacy->revision;
    one.capabilities = session->peer.legacy->capabilities;
    one.used = std::chrono::duration_cast<std::chrono::seconds>(session->used.time_since_epoch());
    stored.push_back(std::move(one));
  }
  std::ranges::sort(stored, {}, &StoredPeer::used);
  return stored;
}

void Peers::restore(std::vector<StoredPeer> stored, Clock::time_point now) {
  for (StoredPeer& one : stored) {
    Clock::time_point used(one.used);
    if (now - used > limits_.session_idle) continue;
    Session session = make(one.principal);
    session->id = one.id;
    session->peer.transport_session = one.id;
    session->peer.legacy = mcp::Peer::Legacy{one.revision, std::move(one.capabilities)};
    session->used = std::min(used, now);
    admit(std::move(session));
  }
  changed_ = false;
}

}  // namespace transport::http
