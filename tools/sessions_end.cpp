// How sessions end: closed, expired, put back to disk to make room, and all of them with the
// server.

#include <spdlog/spdlog.h>

#include <algorithm>

#include "mcp/error.hpp"
#include "tools/identifiers.hpp"
#include "tools/sessions.hpp"

namespace tools {

namespace {

constexpr std::chrono::milliseconds kExpiryPeriod{10'000};
constexpr std::chrono::minutes kSweepPeriod{10};

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

}  // namespace

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
    throw mcp::ToolError(
        "Too many sessions are open (" + std::to_string(by_handle_.size()) +
        "). Close one with close_session, or go on in one of yours: list_sessions.");
  leave(oldest, is_worth_keeping(*oldest));
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
