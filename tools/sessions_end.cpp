// How many there may be, and how they end: closed, expired, put back to disk to make room, and all
// of them with the server.

#include <spdlog/spdlog.h>

#include <algorithm>

#include "mcp/error.hpp"
#include "tools/identifiers.hpp"
#include "tools/sessions.hpp"

namespace tools {

namespace {

constexpr std::chrono::milliseconds kExpiryPeriod{10'000};
constexpr std::chrono::minutes kSweepPeriod{10};
constexpr std::chrono::milliseconds kNoFreeze{0};
constexpr std::chrono::milliseconds kIdleFreeze{30'000};

std::string time_of(std::chrono::seconds time) {
  if (time < std::chrono::minutes(2)) return std::to_string(time.count()) + " seconds";
  return std::to_string(time.count() / 60) + " minutes";
}

bool is_at_rest(const Session& session) {
  auto state = session.state();
  bool rests = state == Session::State::cold || state == Session::State::hibernated;
  return rests && session.waiting() == 0;
}

}  // namespace

bool Sessions::images_work() const {
  return backend_.capabilities().snapshot == sandbox::Capabilities::Snapshot::exact;
}

bool Sessions::is_worth_keeping(const Session& session) const {
  if (!session.record().name.empty()) return true;
  // Also when its variables were lost, so that whoever comes for them learns why.
  if (session.record().generation > 0 && images_work()) return true;
  std::error_code failed;
  bool empty = std::filesystem::is_empty(session.workspace(), failed);
  // Code may have taken the permissions off it: what cannot be looked into is kept.
  if (failed) empty = failed == std::errc::no_such_file_or_directory;
  return !empty;
}

// A server that runs for days meets more conversations than it can hold: those without a kernel go
// back to disk, the longest unused first. Their handles still find them.
void Sessions::admit_session() {
  if (by_handle_.size() < policy_.max_sessions) return;
  std::shared_ptr<Session> oldest;
  for (const auto& [handle, session] : by_handle_) {
    bool rests = is_at_rest(*session);
    if (rests && (!oldest || session->last_used() < oldest->last_used())) oldest = session;
  }
  if (!oldest)
    throw mcp::ToolError(
        "Too many sessions are open (" + std::to_string(by_handle_.size()) +
        "). Close one with close_session, or go on in one of yours: list_sessions.");
  leave(oldest, is_worth_keeping(*oldest), kNoFreeze);
}

void Sessions::admit_kernel(const std::string& principal) const {
  std::size_t all = 0, own = 0;
  for (const auto& [handle, session] : by_handle_) {
    if (!session->takes_kernel()) continue;
    ++all;
    if (session->record().principal == principal) ++own;
  }
  if (all < policy_.max_live && own < policy_.max_live_per_principal) return;
  bool all_taken = all >= policy_.max_live;
  std::string count = all_taken ? std::to_string(all) : std::to_string(own) + " of yours";
  throw sandbox::StartError("Too many kernels run at once (" + count +
                            "). Close a session with close_session; list_sessions shows yours.");
}

awaitable<void> Sessions::close(const std::string& principal, const std::string& handle) {
  auto session = co_await open_or_explain(principal, handle);
  leave(std::move(session), false, kNoFreeze);
  co_await leaving_.join();
}

void Sessions::leave(std::shared_ptr<Session> session, bool keep,
                     std::chrono::milliseconds freeze_limit) {
  by_handle_.erase(session->handle());
  std::erase_if(defaults_, [&](const auto& entry) { return entry.second == session->handle(); });
  leaving_.spawn(close_now(std::move(session), keep, freeze_limit));
}

awaitable<void> Sessions::close_now(std::shared_ptr<Session> session, bool keep,
                                    std::chrono::milliseconds freeze_limit) {
  co_await session->close(keep, freeze_limit);
}

awaitable<void> Sessions::expire() {
  auto shortest = std::min(policy_.session_ttl, policy_.idle_timeout);
  auto period = std::min<std::chrono::milliseconds>(kExpiryPeriod, shortest / 4);
  auto next_sweep = std::chrono::steady_clock::now() + period;
  for (;;) {
    co_await async::sleep_for(period);
    auto now = std::chrono::steady_clock::now();
    auto sessions = by_handle_;  // they come and go while we wait below
    for (const auto& [handle, session] : sessions) {
      auto unused = std::chrono::duration_cast<std::chrono::seconds>(now - session->last_used());
      try {
        co_await rest(session, unused);
      } catch (const boost::system::system_error&) {  // we are cancelled
        throw;
      } catch (const std::exception& defect) {  // of one; the others are to rest all the same
        spdlog::error("session {} cannot be put to rest: {}", handle, defect.what());
      }
      // A freeze is not to be cancelled half-way, but we are, after it.
      co_await boost::asio::this_coro::throw_if_cancelled(true);
    }
    if (now < next_sweep) continue;
    next_sweep = now + kSweepPeriod;
    co_await sweep();
  }
}

// What becomes of a session that was not used for so long.
awaitable<void> Sessions::rest(std::shared_ptr<Session> session, std::chrono::seconds unused) {
  if (session->state() == Session::State::hibernated) {
    // On disk it counts as all others do, and another process can have it.
    bool long_enough = unused >= policy_.idle_timeout + policy_.session_ttl;
    if (long_enough && is_at_rest(*session)) leave(session, true, kNoFreeze);
    co_return;
  }
  if (session->state() != Session::State::idle || session->waiting() > 0) co_return;
  bool too_long = unused >= policy_.session_ttl;
  bool idle = unused >= policy_.idle_timeout && session->not_hibernated().empty();
  if (images_work() && (idle || too_long)) {
    // At last, going on without a socket is better than ending with it.
    bool frozen = co_await session->hibernate(kIdleFreeze, too_long);
    if (frozen) co_return;
  }
  if (!too_long) co_return;
  std::string reason = "was stopped after " + time_of(policy_.session_ttl) + " without use";
  if (!session->not_hibernated().empty())
    reason += ", since it could not be put on disk: " + session->not_hibernated();
  co_await session->stop_kernel(std::move(reason));
}

awaitable<void> Sessions::sweep() {
  std::int64_t oldest = now_seconds() - policy_.keep.count();
  auto work = [this, oldest] { return store_.sweep(oldest, snapshots_.room()); };
  try {
    int swept = co_await async::on_pool(pool_, work);
    if (swept > 0) spdlog::info("deleted {} old sessions", swept);
  } catch (const boost::system::system_error&) {  // we are cancelled
    throw;
  } catch (const std::exception& failure) {
    spdlog::warn("old sessions cannot be deleted: {}", failure.what());  // next time, perhaps
  }
}

awaitable<void> Sessions::shutdown(std::chrono::milliseconds freeze_limit) {
  std::vector<std::shared_ptr<Session>> sessions;
  for (const auto& [handle, session] : by_handle_) sessions.push_back(session);
  // If there is no time for all, then the last ones used.
  std::ranges::sort(sessions,
                    [](const auto& a, const auto& b) { return a->last_used() > b->last_used(); });
  if (!images_work()) freeze_limit = kNoFreeze;
  for (const auto& session : sessions) leave(session, is_worth_keeping(*session), freeze_limit);
  co_await leaving_.join();
}

}  // namespace tools
