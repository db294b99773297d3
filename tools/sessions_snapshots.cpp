// Snapshots of sessions: made, restored as new sessions or in place, deleted.

#include <spdlog/spdlog.h>

#include <functional>
#include <limits>

#include "mcp/error.hpp"
#include "sandbox/copy_tree.hpp"
#include "sandbox/state_files.hpp"
#include "schemas/codec.hpp"
#include "tools/identifiers.hpp"
#include "tools/sessions.hpp"
#include "tools/text.hpp"

namespace tools {

namespace asio = boost::asio;
using mcp::ToolError;

namespace {

// A cell that runs has so long to end; clients cut calls after a minute.
constexpr std::chrono::milliseconds kTurnLimit{45'000};
constexpr std::size_t kMaxLost = 20;
constexpr std::size_t kMaxLostText = 200;

std::vector<std::string> bounded(const std::vector<std::string>& memory,
                                 const std::vector<std::string>& files) {
  std::vector<std::string> lost;
  auto add = [&lost](const std::string& prefix, const std::string& text) {
    if (lost.size() < kMaxLost)
      lost.emplace_back(first_characters(one_line(prefix + text), kMaxLostText));
  };
  for (const std::string& each : memory) add("", each);
  for (const std::string& each : files) add("/workspace/", each);
  return lost;
}

// Throws ToolError for what the reader can do something about, else what it was given.
[[noreturn]] void explain(std::exception_ptr failure, const std::string& intact) {
  std::string text;
  try {
    std::rethrow_exception(failure);
  } catch (const sandbox::FreezeError& refused) {
    text = std::string("The kernel cannot be frozen: ") + refused.what() + ".";
  } catch (const sandbox::ThawError& refused) {
    text = std::string("The snapshot cannot be restored: ") + refused.what();
  } catch (const sandbox::StartError& refused) {
    text = refused.what();
  } catch (const sandbox::CopyError& refused) {
    text = refused.what();
  } catch (const sandbox::StoreError& refused) {
    text = refused.what();
  }
  if (!text.ends_with('.')) text += '.';
  while (text.ends_with("..")) text.pop_back();
  throw ToolError(text + " " + intact);
}

}  // namespace

std::string title(const sandbox::SnapshotRecord& record) {
  return record.id + (record.name.empty() ? "" : " \"" + record.name + "\"");
}

awaitable<Sessions::Taken> Sessions::snapshot(std::shared_ptr<Session> session, std::string name,
                                              bool allow_lost) {
  auto turn = co_await session->turn(kTurnLimit);
  // From here on it is made whole or not at all, whether or not the caller still waits.
  co_await asio::this_coro::throw_if_cancelled(false);
  sandbox::SnapshotRecord record;
  record.id = random_id();
  record.principal = session->record().principal;
  record.name = std::move(name);
  record.session = session->handle();
  record.python = session->record().python;
  record.network = session->record().network;
  record.created = now_seconds();
  std::optional<sandbox::SnapshotHold> draft;
  auto begin = [this, &draft, &record] { draft.emplace(snapshots_.begin(record)); };
  auto discard = [this, &draft] { snapshots_.discard(std::move(*draft)); };
  std::exception_ptr failure;
  sandbox::FreezeReport frozen;
  try {
    auto kernel = co_await session->kernel();
    co_await async::on_pool(pool_, begin);
    sandbox::FreezeOptions options;
    options.allow_lost = allow_lost;
    std::filesystem::path image = draft->image();
    frozen = co_await kernel->freeze(std::move(image), options);
    auto history = draft->history();
    auto history_bytes = co_await session->executed().copy_to(std::move(history));
    auto finish = [this, &draft, &frozen, &session, history_bytes] {
      auto files = sandbox::copy_tree(session->workspace(), draft->workspace(), snapshots_.room());
      draft->record.execution = session->last_execution();
      draft->record.image_bytes = frozen.bytes;
      draft->record.file_bytes = files.bytes + history_bytes;
      draft->record.lost = bounded(frozen.lost, files.skipped);
      draft->record.seal = sandbox::fingerprint(draft->image());
      snapshots_.commit(*draft);
    };
    co_await async::on_pool(pool_, finish);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure && draft) co_await discard_draft(*draft);
  if (failure && draft) co_await async::on_pool(pool_, discard);
  if (failure) explain(failure, "No snapshot was made, and the session goes on.");
  Taken taken;
  taken.record = draft->record;
  taken.pause = frozen.pause;
  co_return taken;
}

// The failure that is about to be told counts, not this one.
awaitable<void> Sessions::discard_draft(const sandbox::SnapshotHold& draft) {
  try {
    co_await backend_.discard(draft.image());
  } catch (const sandbox::StoreError& failure) {
    spdlog::warn("an unfinished snapshot may still be there: {}", failure.what());
  }
}

awaitable<sandbox::SnapshotHold> Sessions::hold_snapshot(const std::string& principal,
                                                         const std::string& snapshot) {
  auto open = [this, &principal, &snapshot] { return snapshots_.open(principal, snapshot); };
  auto held = co_await async::on_pool(pool_, open);
  if (held) co_return std::move(*held);
  auto own = co_await snapshots(principal);
  std::string text = "Snapshot \"" + schemas::clipped(snapshot) + "\" is unknown, or was deleted. ";
  text += own.empty() ? "You have no snapshots." : "Yours: ";
  for (std::size_t i = 0; i < own.size() && i < 10; ++i) text += (i ? ", " : "") + title(own[i]);
  throw ToolError(text + (own.empty() ? "" : "."));
}

awaitable<Sessions::Restored> Sessions::restore(std::string principal, std::string snapshot,
                                                std::optional<std::string> handle) {
  auto held = co_await hold_snapshot(principal, snapshot);
  Restored restored;
  restored.record = held.record;
  bool is_new = !handle || handle->empty();
  Wish wish;
  wish.python = held.record.python;
  wish.network = held.record.network && policy_.allow_network;
  if (is_new) {
    wish.ended = "was being restored from a snapshot when the server ended";
    auto opening = co_await opening_.take();
    restored.session = co_await make(principal, wish);
  } else {
    restored.session = co_await open_or_explain(principal, *handle);
  }
  Session& session = *restored.session;
  if (session.record().python != held.record.python)
    throw ToolError("The snapshot was made with template \"" + held.record.python +
                    "\", and session " + session.handle() + " has \"" + session.record().python +
                    "\". Nothing was changed. Omit `session` to start a new one from it.");
  auto turn = co_await session.turn(kTurnLimit);
  co_await asio::this_coro::throw_if_cancelled(false);
  std::filesystem::path image = held.image();
  std::function<void(const std::filesystem::path&)> fill =
      [&held](const std::filesystem::path& to) {
        if (sandbox::fingerprint(held.image()) != held.record.seal)
          throw sandbox::ThawError("its image is damaged, or it is not the one of this snapshot.");
        sandbox::copy_tree(held.workspace(), to, std::numeric_limits<std::uint64_t>::max());
      };
  auto why = is_new ? sandbox::Thaw::fork : sandbox::Thaw::snapshot;
  std::exception_ptr failure;
  try {
    co_await session.become(std::move(image), why, held.record.execution, std::move(fill));
    auto history = held.history();
    co_await session.executed().copy_from(std::move(history));
  } catch (...) {
    failure = std::current_exception();
  }
  turn.reset();
  if (failure && is_new) leave(restored.session, false, std::chrono::milliseconds(0));
  if (failure && is_new) explain(failure, "No session was made.");
  if (failure) explain(failure, "Session " + session.handle() + " is as it was.");
  co_return restored;
}

awaitable<void> Sessions::delete_snapshot(const std::string& principal,
                                          const std::string& snapshot) {
  using Removal = sandbox::SnapshotStore::Removal;
  std::exception_ptr failure;
  Removal removal = Removal::absent;
  try {
    removal = co_await remove_snapshot(principal, snapshot);
  } catch (const sandbox::StoreError&) {
    failure = std::current_exception();
  }
  if (failure) explain(failure, "The snapshot is still there.");
  if (removal == Removal::busy)
    throw ToolError("The snapshot is being restored just now. It is still there; try again.");
  if (removal == Removal::absent) co_await hold_snapshot(principal, snapshot);  // explains
}

// What is kept elsewhere goes first: as long as the record is there, another attempt can be made.
awaitable<sandbox::SnapshotStore::Removal> Sessions::remove_snapshot(const std::string& principal,
                                                                     const std::string& snapshot) {
  auto open = [this, &principal, &snapshot] { return snapshots_.open(principal, snapshot); };
  auto remove = [this, &principal, &snapshot] { return snapshots_.remove(principal, snapshot); };
  auto held = co_await async::on_pool(pool_, open);
  if (held) co_await backend_.discard(held->image());
  held.reset();
  co_return co_await async::on_pool(pool_, remove);
}

awaitable<std::vector<sandbox::SnapshotRecord>> Sessions::snapshots(const std::string& principal) {
  auto look = [this, &principal] { return snapshots_.list(principal); };
  co_return co_await async::on_pool(pool_, look);
}

}  // namespace tools
