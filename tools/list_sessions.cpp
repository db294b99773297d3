#include "tools/identifiers.hpp"
#include "tools/text.hpp"
#include "tools/tools.hpp"

namespace tools {

namespace {

struct Args {};
BOOST_DESCRIBE_STRUCT(Args, (), ())

constexpr std::size_t kMaxStored = 50;

std::string state_name(const Session& session) {
  switch (session.state()) {
    case Session::State::cold:
      return "no kernel";
    case Session::State::starting:
      return "starting";
    case Session::State::idle:
      return "idle";
    case Session::State::running:
      return "running";
    case Session::State::interrupting:
      return "interrupting";
    case Session::State::hibernating:
      return "going to disk";
    case Session::State::hibernated:
      return "on disk, variables kept";
  }
  return "";
}

std::string ago(std::int64_t seconds) {
  if (seconds < 120) return std::to_string(std::max<std::int64_t>(seconds, 0)) + " s ago";
  if (seconds < 7200) return std::to_string(seconds / 60) + " min ago";
  if (seconds < 48 * 3600) return std::to_string(seconds / 3600) + " h ago";
  return std::to_string(seconds / 86400) + " days ago";
}

std::string line(const Session& session) {
  auto idle = std::chrono::steady_clock::now() - session.last_used();
  std::string text = title(session.record()) + ": " + state_name(session) +
                     ", kernel starts: " + std::to_string(session.record().generation) +
                     ", template " + session.record().python;
  if (session.record().network) text += ", network on";
  auto usage = session.usage();
  if (usage && usage->memory > 0) text += ", memory " + size_text(usage->memory);
  if (session.active()) text += ", runs execution " + session.active()->execution->id;
  if (session.waiting()) text += ", " + std::to_string(session.waiting()) + " waiting";
  return text + ", used " + ago(std::chrono::duration_cast<std::chrono::seconds>(idle).count()) +
         "\n";
}

std::string line(const sandbox::SessionRecord& record, bool outlives_server, std::int64_t now) {
  bool whole = record.image && record.image->current;
  std::string state = whole ? "on disk, variables kept" : "on disk, files only";
  // Left by a server that was killed, say.
  if (outlives_server && !whole && record.generation > 0 && !record.ended)
    state = "without a server, variables kept if its sandbox is still there";
  return title(record) + ": " + state + ", used " + ago(now - record.used) + "\n";
}

std::string line(const sandbox::SnapshotRecord& record, std::int64_t now) {
  std::string text = "Snapshot " + title(record) + ": of session " + record.session + " " +
                     after_execution(record.execution) +
                     (record.image_bytes ? ", " + size_text(record.bytes()) : "") + ", template " +
                     record.python + ", made " + ago(now - record.created);
  if (!record.lost.empty()) text += ", without " + list_of(record.lost);
  return text + "\n";
}

awaitable<mcp::CallToolResult> list(Sessions& sessions, Snapshots& snapshots, mcp::Call& call,
                                    Args) {
  const std::string& principal = call.peer().principal;
  std::string text;
  for (const auto& session : sessions.live(principal)) text += line(*session);
  auto stored = co_await sessions.stored(principal);
  std::int64_t now = now_seconds();
  bool outlives_server = sessions.capabilities().outlives_server;
  for (std::size_t i = 0; i < stored.size() && i < kMaxStored; ++i)
    text += line(stored[i], outlives_server, now);
  if (stored.size() > kMaxStored)
    text += "[and " + std::to_string(stored.size() - kMaxStored) + " older ones]\n";
  auto own = co_await snapshots.list(principal);
  for (const auto& snapshot : own) text += line(snapshot, now);  // their number is limited
  if (text.empty()) text = "No sessions. run_python makes the default one.\n";
  text.pop_back();
  co_return text_result(std::move(text));
}

}  // namespace

mcp::Tool list_sessions(Sessions& sessions, Snapshots& snapshots) {
  return mcp::make_tool<Args>(tool_info("list_sessions"),
                              [&sessions, &snapshots](mcp::Call& call, Args args) {
                                return list(sessions, snapshots, call, std::move(args));
                              });
}

}  // namespace tools
