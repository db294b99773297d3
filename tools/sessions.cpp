#include "tools/sessions.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>

#include "mcp/error.hpp"
#include "schemas/codec.hpp"
#include "tools/identifiers.hpp"

namespace tools {

namespace asio = boost::asio;
namespace json = boost::json;
using mcp::ToolError;

namespace {

constexpr std::chrono::milliseconds kExpiryPeriod{10'000};
constexpr std::chrono::minutes kSweepPeriod{10};

// What known hosts call a conversation in `_meta`. Self-reported, so only ever a default within one
// principal, never an identity.
constexpr std::string_view kConversationKeys[] = {"vscode.conversationId",
                                                  "openai/session",
                                                  "threadId",
                                                  "sessionId",
                                                  "sessionID",
                                                  "ai.opencode/sessionID",
                                                  "antigravity.google/conversation_id"};
constexpr std::size_t kMaxConversationId = 256;

std::string conversation_of(const mcp::Call& call) {
  for (std::string_view key : kConversationKeys) {
    const json::value* id = call.meta().if_contains(key);
    if (id && id->is_string() && !id->get_string().empty() &&
        id->get_string().size() <= kMaxConversationId)
      return std::string(key) + "=" + std::string(id->get_string());
  }
  return {};
}

// The default session a call belongs to; empty when it has none.
std::string default_key(const mcp::Call& call) {
  const mcp::Peer& peer = call.peer();
  if (!peer.transport_session.empty())
    return peer.principal + "\ntransport " + peer.transport_session;
  std::string conversation = conversation_of(call);
  if (!conversation.empty()) return peer.principal + "\nconversation " + conversation;
  if (peer.has_default_session) return peer.principal + "\nprocess";
  return {};
}

bool is_process_default(const mcp::Call& call) {
  return call.peer().has_default_session && call.peer().transport_session.empty() &&
         conversation_of(call).empty();
}

std::string time_of(std::chrono::seconds time) {
  if (time < std::chrono::minutes(2)) return std::to_string(time.count()) + " seconds";
  return std::to_string(time.count() / 60) + " minutes";
}

bool is_worth_keeping(const Session& session) {
  std::error_code failed;
  bool empty = std::filesystem::is_empty(session.workspace(), failed);
  // Code may have taken the permissions off it: what cannot be looked into is kept.
  if (failed) empty = failed == std::errc::no_such_file_or_directory;
  return !session.record().name.empty() || !empty;
}

void refuse_taken(const std::vector<sandbox::SessionRecord>& records, const std::string& name) {
  for (const auto& other : records)
    if (other.name == name)
      throw ToolError("You already have a session named \"" + name + "\": pass session=\"" +
                      other.id + "\" to use it, or choose another name.");
}

}  // namespace

Sessions::Sessions(asio::any_io_executor executor, asio::thread_pool& pool,
                   sandbox::Backend& backend, sandbox::SessionStore& store, SessionPolicy policy,
                   FindPython find_python)
    : executor_(executor),
      pool_(pool),
      backend_(backend),
      store_(store),
      policy_(std::move(policy)),
      find_python_(std::move(find_python)),
      opening_(executor),
      leaving_(executor) {}

awaitable<std::shared_ptr<Session>> Sessions::resolve(const mcp::Call& call,
                                                      const std::optional<std::string>& handle) {
  const std::string& principal = call.peer().principal;
  if (handle && !handle->empty()) co_return co_await open_or_explain(principal, *handle);

  std::string key = default_key(call);
  if (key.empty()) {
    Wish wish;
    co_return co_await create(principal, wish);
  }
  auto turn = co_await opening_.take();  // fifty first calls at once make one session
  auto known = defaults_.find(key);
  if (known != defaults_.end())
    if (auto session = find(principal, known->second)) co_return session;
  auto session = co_await make_default(call);
  defaults_[key] = session->handle();
  co_return session;
}

awaitable<std::shared_ptr<Session>> Sessions::make_default(const mcp::Call& call) {
  const std::string& principal = call.peer().principal;
  Wish wish;
  if (policy_.default_name.empty() || !is_process_default(call))
    co_return co_await make(principal, wish);

  Opened named = co_await open(principal, policy_.default_name);
  if (named.session) co_return named.session;
  if (named.held == Held::absent) wish.name = policy_.default_name;
  auto session = co_await make(principal, wish);
  if (named.held == Held::elsewhere)
    session->announce("Session \"" + policy_.default_name +
                      "\" is in use by another pykeep process, so this is a fresh one.");
  co_return session;
}

awaitable<std::shared_ptr<Session>> Sessions::open_or_explain(const std::string& principal,
                                                              const std::string& handle) {
  if (auto session = find(principal, handle)) co_return session;
  auto turn = co_await opening_.take();
  Opened opened = co_await open(principal, handle);
  if (opened.session) co_return opened.session;
  std::string what = opened.held == Held::elsewhere
                         ? "is in use by another pykeep process, which has to end first"
                         : "is unknown, or was closed and deleted";
  throw ToolError("Session \"" + schemas::clipped(handle) + "\" " + what + ". Nothing was run. " +
                  names(principal) +
                  "Omit `session` for the default session, or use create_session for a new one.");
}

awaitable<std::shared_ptr<Session>> Sessions::reach(const std::string& principal,
                                                    const std::string& handle) {
  if (auto session = find(principal, handle)) co_return session;
  auto turn = co_await opening_.take();
  Opened opened = co_await open(principal, handle);
  co_return opened.session;
}

// Called with the turn held.
awaitable<Sessions::Opened> Sessions::open(const std::string& principal,
                                           const std::string& handle) {
  Opened opened;
  for (const auto& session : live(principal))
    if (session->handle() == handle || session->record().name == handle) opened.session = session;
  if (opened.session) {
    opened.held = Held::here;
    co_return opened;
  }
  using State = sandbox::SessionStore::Lookup::State;
  auto look = [this, &principal, &handle] {
    auto found = store_.open(principal, handle);
    return found.state == State::absent ? store_.open_named(principal, handle) : std::move(found);
  };
  sandbox::SessionStore::Lookup found;
  try {
    found = co_await async::on_pool(pool_, look);
  } catch (const sandbox::StoreError& failure) {
    throw ToolError(failure.what());
  }
  if (found.state == State::absent) co_return opened;
  opened.held = Held::elsewhere;
  if (found.state == State::busy) co_return opened;
  admit_session();
  opened.held = Held::here;
  opened.session = adopt(std::move(*found.lease));
  opened.session->announce("Session " + opened.session->handle() +
                           " was taken over from disk, with its files.");
  co_return opened;
}

awaitable<std::shared_ptr<Session>> Sessions::create(const std::string& principal,
                                                     const Wish& wish) {
  auto turn = co_await opening_.take();
  co_return co_await make(principal, wish);
}

// Called with the turn held.
awaitable<std::shared_ptr<Session>> Sessions::make(const std::string& principal, const Wish& wish) {
  if (wish.network && !policy_.allow_network)
    throw ToolError(
        "Network access is off: the operator has to start pykeep with --allow-network. Create the "
        "session without `network`.");
  if (wish.python.find('/') != wish.python.npos)
    throw ToolError(
        "arguments.template: expected the name of a template, not a path. No session was made.");
  admit_session();
  sandbox::SessionRecord record;
  record.id = random_id();
  record.principal = principal;
  record.name = wish.name;
  record.python = wish.python.empty() ? policy_.default_python : wish.python;
  record.network = wish.network;
  record.created = record.used = now_seconds();
  auto prepare = [this, &record] {
    find_python_(record.python);  // before anything is made: a wrong name has no effect
    if (!record.name.empty()) refuse_taken(store_.list(record.principal), record.name);
    return store_.create(record);
  };
  sandbox::SessionLease lease;
  try {
    lease = co_await async::on_pool(pool_, prepare);
  } catch (const sandbox::StoreError& failure) {
    throw ToolError(std::string(failure.what()) + " No session was made.");
  } catch (const sandbox::StartError& failure) {
    throw ToolError(failure.what());
  }
  auto session = adopt(std::move(lease));
  session->announce("New session " + session->handle() + ": pass session=\"" + session->handle() +
                    "\" to come back to it.");
  co_return session;
}

std::shared_ptr<Session> Sessions::adopt(sandbox::SessionLease lease) {
  sandbox::SandboxSpec spec;
  try {
    spec.python = find_python_(lease.record.python);
  } catch (const sandbox::StartError& failure) {
    throw ToolError(failure.what());
  }
  spec.limits = policy_.limits;
  spec.network = lease.record.network && policy_.allow_network;
  spec.environment = policy_.environment;
  std::string handle = lease.record.id;
  auto admit = [this, principal = lease.record.principal] { admit_kernel(principal); };
  auto session = std::make_shared<Session>(executor_, pool_, backend_, store_, std::move(spec),
                                           std::move(lease), std::move(admit));
  by_handle_[handle] = session;
  return session;
}

// A server that runs for days meets more conversations than it can hold: those without a kernel go
// back to disk, the longest unused first. Their handles still find them.
void Sessions::admit_session() {
  if (by_handle_.size() < policy_.max_sessions) return;
  std::shared_ptr<Session> oldest;
  for (const auto& [handle, session] : by_handle_) {
    bool rests = session->state() == Session::State::cold && session->waiting() == 0;
    if (rests && (!oldest || session->last_used() < oldest->last_used())) oldest = session;
  }
  if (!oldest)
    throw ToolError("Too many sessions are open (" + std::to_string(by_handle_.size()) +
                    "). Close one with close_session, or go on in one of yours: list_sessions.");
  leave(oldest, is_worth_keeping(*oldest));
}

void Sessions::admit_kernel(const std::string& principal) const {
  std::size_t all = 0, own = 0;
  for (const auto& [handle, session] : by_handle_) {
    if (!session->takes_kernel()) continue;
    ++all;
    if (session->record().principal == principal) ++own;
  }
  if (all < policy_.max_live && own < policy_.max_live_per_principal) return;
  throw sandbox::StartError("Too many kernels run at once (" + std::to_string(all) +
                            "). Close a session with close_session; list_sessions shows yours.");
}

std::string Sessions::names(const std::string& principal) const {
  auto own = live(principal);
  if (own.empty()) return "You have no open sessions. ";
  std::string text = "Your open sessions: ";
  for (std::size_t i = 0; i < own.size() && i < 10; ++i) text += (i ? ", " : "") + own[i]->handle();
  return text + ". ";
}

std::shared_ptr<Session> Sessions::find(const std::string& principal,
                                        const std::string& handle) const {
  auto found = by_handle_.find(handle);
  if (found == by_handle_.end() || found->second->record().principal != principal) return nullptr;
  return found->second;
}

Sessions::Found Sessions::find_execution(const std::string& principal,
                                         const std::string& execution_id) const {
  for (const auto& session : live(principal))
    if (auto run = session->find(execution_id)) return {session, run};
  throw ToolError("Execution \"" + schemas::clipped(execution_id) +
                  "\" is unknown: its session was closed, or it is one of long ago. Variables of "
                  "open sessions are kept; run_python goes on there.");
}

std::vector<std::shared_ptr<Session>> Sessions::live(const std::string& principal) const {
  std::vector<std::shared_ptr<Session>> own;
  for (const auto& [handle, session] : by_handle_)
    if (session->record().principal == principal) own.push_back(session);
  std::ranges::sort(own,
                    [](const auto& a, const auto& b) { return a->last_used() > b->last_used(); });
  return own;
}

awaitable<std::vector<sandbox::SessionRecord>> Sessions::stored(const std::string& principal) {
  auto look = [this, &principal] { return store_.list(principal); };
  auto records = co_await async::on_pool(pool_, look);
  std::erase_if(records, [this](const auto& record) { return by_handle_.contains(record.id); });
  co_return records;
}

awaitable<void> Sessions::close(const std::string& principal, const std::string& handle) {
  auto session = co_await open_or_explain(principal, handle);
  leave(std::move(session), false);
  co_await leaving_.join();
}

void Sessions::leave(std::shared_ptr<Session> session, bool keep_files) {
  by_handle_.erase(session->handle());
  std::erase_if(defaults_, [&](const auto& entry) { return entry.second == session->handle(); });
  leaving_.spawn(close_now(std::move(session), keep_files));
}

awaitable<void> Sessions::close_now(std::shared_ptr<Session> session, bool keep_files) {
  co_await session->close(keep_files);
}

awaitable<void> Sessions::expire() {
  auto period = std::min<std::chrono::milliseconds>(kExpiryPeriod, policy_.session_ttl / 4);
  auto next_sweep = std::chrono::steady_clock::now() + period;
  std::string reason = "was stopped after " + time_of(policy_.session_ttl) + " without use";
  for (;;) {
    co_await async::sleep_for(period);
    auto now = std::chrono::steady_clock::now();
    auto sessions = by_handle_;  // they come and go while we wait below
    for (const auto& [handle, session] : sessions) {
      bool idle = session->state() == Session::State::idle && session->waiting() == 0;
      if (!idle || now - session->last_used() < policy_.session_ttl) continue;
      co_await session->stop_kernel(reason, false);
    }
    if (now < next_sweep) continue;
    next_sweep = now + kSweepPeriod;
    co_await sweep();
  }
}

awaitable<void> Sessions::sweep() {
  auto work = [this] { return store_.sweep(now_seconds() - policy_.keep.count(), policy_.disk); };
  try {
    int swept = co_await async::on_pool(pool_, work);
    if (swept > 0) spdlog::info("deleted {} old sessions", swept);
  } catch (const std::filesystem::filesystem_error& failure) {
    spdlog::warn("old sessions cannot be deleted: {}", failure.what());  // next time, perhaps
  }
}

awaitable<void> Sessions::shutdown() {
  auto sessions = by_handle_;
  for (const auto& [handle, session] : sessions) leave(session, is_worth_keeping(*session));
  co_await leaving_.join();
}

}  // namespace tools
