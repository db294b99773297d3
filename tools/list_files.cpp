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
constexpr std::size_t kMaxText = 60'000;  // bytes: one path may have 4,095

std::string line(const sandbox::FileInfo& entry) {
  std::string text = one_line(entry.path);
  if (entry.is_directory) return text + "/\n";
  if (entry.is_link) return text + "  (link)\n";
  return text + "  " + size_text(entry.size) + "\n";
}

std::string text_of(const sandbox::Listing& listing) {
  std::string text;
  std::size_t shown = 0;
  for (; shown < listing.entries.size() && text.size() < kMaxText; ++shown)
    text += line(listing.entries[shown]);
  if (shown < listing.entries.size() || !listing.complete)
    text += "[only " + std::to_string(shown) + " of them; name a directory to see more]\n";
  return text.empty() ? "(no files)\n" : text;
}

awaitable<mcp::CallToolResult> list(Sessions& sessions, mcp::Call& call, Args args) {
  auto session = co_await sessions.resolve(call, args.session);
  session->touch();
  std::string path = args.path.value_or("");
  sandbox::Listing listing;
  try {
    auto files = co_await session->files();
    listing = co_await files->list(path, kDepth, kMaxEntries);
  } catch (const sandbox::FileError& failure) {
    throw mcp::ToolError(failure.what());
  }
  co_return text_result(text_of(listing) + "[session " + session->handle() + "]");
}

}  // namespace

mcp::Tool list_files(Sessions& sessions) {
  return mcp::make_tool<Args>(tool_info("list_files"), [&sessions](mcp::Call& call, Args args) {
    return list(sessions, call, std::move(args));
  });
}

}  // namespace tools
