#include "tools/name.hpp"
#include "tools/session_images.hpp"
#include "tools/text.hpp"
#include "tools/tools.hpp"

namespace tools {

namespace {

struct Args {
  std::optional<std::string> session;
  std::optional<std::string> name;
  std::optional<bool> allow_lost;
};
BOOST_DESCRIBE_STRUCT(Args, (), (session, name, allow_lost))

std::string milliseconds(std::chrono::microseconds time) {
  return std::to_string((time.count() + 500) / 1000) + " ms";
}

// An image of no bytes is one that is kept elsewhere, with the files.
std::string sizes_of(const sandbox::SnapshotRecord& record) {
  if (record.image_bytes == 0) return "memory and files";
  return "memory " + size_text(record.image_bytes) + ", files " + size_text(record.file_bytes);
}

awaitable<mcp::CallToolResult> take(Sessions& sessions, Snapshots& snapshots, mcp::Call& call,
                                    Args args) {
  if (args.name) check_name(*args.name, "No snapshot was made.");
  auto session = co_await sessions.resolve(call, args.session);
  auto taken =
      co_await snapshots.take(session, args.name.value_or(""), args.allow_lost.value_or(false));
  const auto& record = taken.record;
  std::string text = "Snapshot " + title(record) + " of session " + record.session + ", " +
                     after_execution(record.execution) + ": " + sizes_of(record) +
                     "; the kernel stood still for " + milliseconds(taken.pause) + " and goes on.";
  if (std::string note = sessions.capabilities().snapshot_note; !note.empty()) text += " " + note;
  if (!record.lost.empty()) text += " Not in it: " + list_of(record.lost) + ".";
  text += " restore_snapshot starts a new session from it or takes one back to it.";
  co_return text_result(std::move(text));
}

}  // namespace

mcp::Tool snapshot(Sessions& sessions, Snapshots& snapshots) {
  return mcp::make_tool<Args>(tool_info("snapshot"),
                              [&sessions, &snapshots](mcp::Call& call, Args args) {
                                return take(sessions, snapshots, call, std::move(args));
                              });
}

}  // namespace tools
