#include "tools/session_images.hpp"
#include "tools/tools.hpp"

namespace tools {

namespace {

struct Args {
  std::string snapshot;
  std::optional<std::string> session;
};
BOOST_DESCRIBE_STRUCT(Args, (), (snapshot, session))

awaitable<mcp::CallToolResult> restore(Snapshots& snapshots, mcp::Call& call, Args args) {
  bool is_new = !args.session || args.session->empty();
  auto restored = co_await snapshots.restore(call.peer().principal, std::move(args.snapshot),
                                             std::move(args.session));
  const std::string& handle = restored.session->handle();
  std::string from =
      "snapshot " + title(restored.record) + ": variables and files are as they were in session " +
      restored.record.session + " " + after_execution(restored.record.execution) + ".";
  std::string text =
      is_new ? "Session " + handle + " was started from " + from + " Pass session=\"" + handle +
                   "\" to work in it."
             : "Session " + handle + " went back to " + from + " What it had since then is gone.";
  if (!restored.record.lost.empty())
    text += " Not in the snapshot: " + list_of(restored.record.lost) + ".";
  co_return text_result(std::move(text));
}

}  // namespace

mcp::Tool restore_snapshot(Snapshots& snapshots) {
  return mcp::make_tool<Args>(tool_info("restore_snapshot"),
                              [&snapshots](mcp::Call& call, Args args) {
                                return restore(snapshots, call, std::move(args));
                              });
}

}  // namespace tools
