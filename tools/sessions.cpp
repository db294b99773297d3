#include "tools/sessions.hpp"

#include <algorithm>

#include "mcp/error.hpp"
#include "schemas/codec.hpp"
#include "tools/identifiers.hpp"

namespace tools {

namespace asio = boost::asio;
using mcp::ToolError;

namespace {

using Clock = std::chrono::steady_clock;

void refuse_taken(const std::vector<sandbox::SessionRecord>& records, const std::string& name) {
  for (const auto& other : records)
    if (other.name == name)
      throw ToolError("You already have a session named \"" + name + "\": pass session=\"" +
                      other.id + "\" to use it, or choose another name.");
}

}  // namespace

Sessions::Sessions(asio::any_io_executor executor, asio::thread_pool& pool,
                   sandbox::Backend& backend, sandbox::SessionStore& store,
                   const sandbox::SnapshotStore& snapshots, SessionPolicy policy,
                   FindPython find_python, Observer* observer)
    : executor_(executor),
      pool_(pool),
      backend_(backend),
      store_(store),
      snapshots_(snapshots),
      policy_(std::move(policy)),
      find_python_(std::move(find_python)),
      observer_(observer),
      process_(random_id()),
      opening_(executor),
      leaving_(executor) {}

awaitable<std::shared_ptr<Session>> Sessions::open_or_explain(const std::string& principal,
                                                              const std::string& handle) {
  if (auto session = find(principal, handle)) co_return session;
  Opened opened = co_await open_when_free(principal, handle);
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
  Opened opened = co_await open_when_free(principal, handle);
  co_return opened.session;
}

awaitable<Sessions::Opened> Sessions::open_when_free(const std::string& principal,
                                                     const std::string& handle) {
  auto deadline = Clock::now() + policy_.hand_over;
  for (;;) {
    auto turn = co_await opening_.take();
    Opened opened = co_await open(principal, handle);
    if (opened.held != Held::elsewhere || Clock::now() >= deadline) co_return opened;
    turn.reset();
    co_await async::sleep_for(kLook);
  }
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
  Look look = [this, &principal, &handle] {
    auto found = store_.open(principal, handle);
    if (found.state != sandbox::SessionStore::Lookup::State::absent) return found;
    return store_.open_named(principal, handle);
  };
  co_return co_await open_stored(std::move(look));
}

// Called with the turn held.
awaitable<Sessions::Opened> Sessions::open_stored(Look look) {
  using State = sandbox::SessionStore::Lookup::State;
  Opened opened;
  sandbox::SessionStore::Lookup found;
  try {
    found = co_await async::on_pool(pool_, std::move(look));
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
  bool can_be_off = backend_.capabilities().network_isolation;
  if (wish.network && !policy_.allow_network && can_be_off)
    throw ToolError(
        "Network access is off: the operator has to start pykeep with --allow-network. Create the "
        "session without `network`.");
  admit_session();
  sandbox::SessionRecord record;
  record.id = random_id();
  record.principal = principal;
  record.name = wish.name;
  record.python = wish.python.empty() ? policy_.default_python : wish.python;
  record.network = wish.network || !can_be_off;
  if (!wish.conversation.empty()) record.conversation = wish.conversation;
  record.ended = wish.ended;
  record.created = record.used = now_seconds();
  auto prepare = [this, &record] {
    // Before anything is made: a wrong name has no effect.
    record.python = find_python_(record.python).name;
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
  constexpr CheckpointPolicy kNever{0, std::chrono::seconds(0)};
  SessionServices services{executor_, pool_, backend_, store_, observer_, kNever, admit};
  if (!backend_.capabilities().outlives_server) services.checkpoints = policy_.checkpoints;
  auto session = std::make_shared<Session>(std::move(services), std::move(spec), std::move(lease));
  by_handle_[handle] = session;
  return session;
}

std::size_t Sessions::kernels() const {
  return std::count_if(by_handle_.begin(), by_handle_.end(),
                       [](const auto& entry) { return entry.second->takes_kernel(); });
}

std::size_t Sessions::running() const {
  return std::count_if(by_handle_.begin(), by_handle_.end(), [](const auto& entry) {
    return entry.second->active() || entry.second->waiting() > 0;
  });
}

std::string Sessions::names(const std::string& principal) const {
  auto own = live(principal);
  if (own.empty()) return "You have no open sessions. ";
  std::string text = "Your open sessions: ";
  for (std::size_t i = 0; i < own.size() && i < 10; ++i)
    text += (i ? ", " : "") + title(own[i]->record());
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
    if (auto run = session->runs().find(execution_id)) return {session, run};
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

}  // namespace tools
