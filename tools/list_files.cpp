#include "tools/text.hpp"
#include "tools/tools.hpp"

namespace tools {

namespace {

struct Args {
  std::optional<std::string> path;
  std::optional<std::string> session;
};
BOOST_DESCRIBE_STRUCT(Args, (), (path, session))

constexpr int kDepth = 4;
constexpr std::size_t kMaxEntries = 300;

std::string line(const sandbox::FileInfo& entry) {
  std::string text = valid_utf8(entry.path);
  if (entry.is_directory) return text + "/\n";
  if (entry.is_link) return text + "  (link)\n";
  return text + "  " + readable_size(entry.size) + "\n";
}

awaitable<mcp::CallToolResult> list(Sessions& sessions, mcp::Call& call, Args args) {
  auto session = co_await sessions.resolve(call, args.session);
  session->touch();
  std::string path = args.path.value_or("");
  sandbox::Listing listing;
  try {
    listing = co_await session->files().list(path, kDepth, kMaxEntries);
  } catch (const sandbox::FileError& failure) {
    throw mcp::ToolError(failure.what());
  }
  std::string text;
  for (const sandbox::FileInfo& entry : listing.entries) text += line(entry);
  if (listing.entries.empty()) text = "(no files)\n";
  if (!listing.complete)
    text += "[only the first " + std::to_string(kMaxEntries) + "; name a directory to see more]\n";
  text += "[session " + session->handle() + "]";
  co_return text_result(std::move(text));
}

}  // namespace

mcp::Tool list_files(Sessions& sessions) {
  return mcp::make_tool<Args>(tool_info("list_files"), [&sessions](mcp::Call& call, Args args) {
    return list(sessions, call, std::move(args));
  });
}

}  // namespace tools
