#include "tools/snapshots.hpp"

#include <spdlog/spdlog.h>

#include <functional>
#include <limits>

#include "mcp/error.hpp"
#include "sandbox/copy_tree.hpp"
#include "sandbox/state_files.hpp"
#include "schemas/codec.hpp"
#include "tools/identifiers.hpp"
#include "tools/text.hpp"

namespace tools {

namespace asio = boost::asio;
using mcp::ToolError;

namespace {

// A cell that runs has so long to end; clients cut calls after a minute.
constexpr std::chrono::milliseconds kTurnLimit{45'000};
constexpr std::chrono::seconds kFirstSweep{10};
constexpr std::chrono::minutes kSweepPeriod{10};
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

sandbox::SnapshotLimits snapshot_limits(const SessionPolicy& policy) {
  sandbox::SnapshotLimits limits;
  limits.disk = policy.disk;
  limits.per_principal = policy.max_snapshots;
  return limits;
}

Snapshots::Snapshots(asio::thread_pool& pool, sandbox::Backend& backend,
                     sandbox::SnapshotStore& store, Sessions& sessions)
    : pool_(pool), backend_(backend), store_(store), sessions_(sessions) {}

awaitable<Snapshots::Taken> Snapshots::take(std::shared_ptr<Session> session, std::string name,
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
  auto begin = [this, &draft, &record] { draft.emplace(store_.begin(record)); };
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
      auto files = sandbox::copy_tree(session->workspace(), draft->workspace(), store_.room());
      draft->record.execution = session->last_execution();
      draft->record.image_bytes = frozen.bytes;
      draft->record.file_bytes = files.bytes;
      draft->record.history_bytes = history_bytes;
      draft->record.lost = bounded(frozen.lost, files.skipped);
      draft->record.seal = sandbox::fingerprint(draft->image());
      store_.commit(*draft);
    };
    co_await async::on_pool(pool_, finish);
  } catch (...) {
    failure = std::current_exception();
  }
  if (failure && draft) co_await discard(std::move(*draft));
  if (failure) explain(failure, "No snapshot was made, and the session goes on.");
  Taken taken;
  taken.record = draft->record;
  taken.pause = frozen.pause;
  co_return taken;
}

// The failure that is about to be told counts, not this one.
awaitable<void> Snapshots::discard(sandbox::SnapshotHold draft) {
  auto remove = [this, &draft] { store_.discard(std::move(draft)); };
  try {
    co_await backend_.discard(draft.image());
  } catch (const sandbox::StoreError& failure) {
    spdlog::warn("an unfinished snapshot may still be there: {}", failure.what());
  }
  co_await async::on_pool(pool_, remove);
}

awaitable<sandbox::SnapshotHold> Snapshots::hold(const std::string& principal,
                                                 const std::string& snapshot) {
  auto open = [this, &principal, &snapshot] { return store_.open(principal, snapshot); };
  auto held = co_await async::on_pool(pool_, open);
  if (held) co_return std::move(*held);
  auto own = co_await list(principal);
  std::string text = "Snapshot \"" + schemas::clipped(snapshot) + "\" is unknown, or was deleted. ";
  text += own.empty() ? "You have no snapshots." : "Yours: ";
  for (std::size_t i = 0; i < own.size() && i < 10; ++i) text += (i ? ", " : "") + title(own[i]);
  throw ToolError(text + (own.empty() ? "" : "."));
}

// The session that is to become what the snapshot has: a new one, or the one of this handle.
awaitable<std::shared_ptr<Session>> Snapshots::target(const sandbox::SnapshotRecord& record,
                                                      const std::optional<std::string>& handle) {
  if (handle) {
    auto session = co_await sessions_.open_or_explain(record.principal, *handle);
    if (session->record().python == record.python) co_return session;
    throw ToolError("The snapshot was made with template \"" + record.python + "\", and session " +
                    session->handle() + " has \"" + session->record().python +
                    "\". Nothing was changed. Omit `session` to start a new one from it.");
  }
  Sessions::Wish wish;
  wish.python = record.python;
  wish.network = record.network && sessions_.policy().allow_network;
  wish.ended = "was being restored from a snapshot when the server ended";
  co_return co_await sessions_.create(record.principal, wish);
}

awaitable<Snapshots::Restored> Snapshots::restore(std::string principal, std::string snapshot,
                                                  std::optional<std::string> handle) {
  auto held = co_await hold(principal, snapshot);
  if (handle && handle->empty()) handle.reset();
  Restored restored;
  restored.record = held.record;
  restored.session = co_await target(held.record, handle);
  Session& session = *restored.session;
  auto turn = co_await session.turn(kTurnLimit);
  co_await asio::this_coro::throw_if_cancelled(false);
  std::filesystem::path image = held.image();
  std::function<void(const std::filesystem::path&)> fill =
      [&held](const std::filesystem::path& to) {
        if (sandbox::fingerprint(held.image()) != held.record.seal)
          throw sandbox::ThawError("its image is damaged, or it is not the one of this snapshot.");
        sandbox::copy_tree(held.workspace(), to, std::numeric_limits<std::uint64_t>::max());
      };
  auto why = handle ? sandbox::Thaw::snapshot : sandbox::Thaw::fork;
  std::exception_ptr failure;
  try {
    co_await session.become(std::move(image), why, held.record.execution, std::move(fill));
    auto history = held.history();
    co_await session.executed().copy_from(std::move(history));
  } catch (...) {
    failure = std::current_exception();
  }
  turn.reset();
  if (!failure) co_return restored;
  if (!handle) co_await sessions_.close(principal, session.handle());
  explain(failure,
          handle ? "Session " + session.handle() + " is as it was." : "No session was made.");
}

awaitable<void> Snapshots::remove(const std::string& principal, const std::string& snapshot) {
  using Removal = sandbox::SnapshotStore::Removal;
  std::exception_ptr failure;
  Removal removal = Removal::absent;
  try {
    removal = co_await remove_all(principal, snapshot);
  } catch (const sandbox::StoreError&) {
    failure = std::current_exception();
  }
  if (failure) explain(failure, "The snapshot is still there.");
  if (removal == Removal::busy)
    throw ToolError("The snapshot is being restored just now. It is still there; try again.");
  if (removal == Removal::absent) co_await hold(principal, snapshot);  // explains
}

// What is kept elsewhere goes first: as long as the record is there, another attempt can be made.
awaitable<sandbox::SnapshotStore::Removal> Snapshots::remove_all(const std::string& principal,
                                                                 const std::string& snapshot) {
  auto open = [this, &principal, &snapshot] { return store_.open(principal, snapshot); };
  auto remove = [this, &principal, &snapshot] { return store_.remove(principal, snapshot); };
  auto held = co_await async::on_pool(pool_, open);
  if (held) co_await backend_.discard(held->image());
  held.reset();
  co_return co_await async::on_pool(pool_, remove);
}

awaitable<std::vector<sandbox::SnapshotRecord>> Snapshots::list(const std::string& principal) {
  auto look = [this, &principal] { return store_.list(principal); };
  co_return co_await async::on_pool(pool_, look);
}

awaitable<void> Snapshots::expire(const sandbox::SnapshotRecord& snapshot) {
  try {
    co_await remove_all(snapshot.principal, snapshot.id);
  } catch (const sandbox::StoreError& failure) {  // the others are to go all the same
    spdlog::warn("snapshot {} cannot be deleted: {}", snapshot.id, failure.what());
  }
}

awaitable<void> Snapshots::sweep() {
  std::int64_t keep = sessions_.policy().snapshot_keep.count();
  std::int64_t oldest = keep > 0 ? now_seconds() - keep : 0;
  auto look = [this, oldest] { return store_.made_before(oldest); };
  auto tidy = [this] {
    store_.sweep();
    return true;
  };
  auto old = co_await async::on_pool(pool_, look);
  for (const auto& snapshot : old) co_await expire(snapshot);
  co_await async::on_pool(pool_, tidy);
}

awaitable<void> Snapshots::expire() {
  co_await async::sleep_for(kFirstSweep);
  for (;;) {
    try {
      co_await sweep();
    } catch (const boost::system::system_error&) {  // we are cancelled
      throw;
    } catch (const std::exception& failure) {  // next time, perhaps
      spdlog::warn("old snapshots cannot be deleted: {}", failure.what());
    }
    co_await async::sleep_for(kSweepPeriod);
  }
}

}  // namespace tools
