#include "tools/content.hpp"
#include "tools/resource_uri.hpp"
#include "tools/text.hpp"
#include "tools/tickets.hpp"
#include "tools/tools.hpp"

namespace tools {

namespace {

struct Args {
  std::string path;
  std::optional<std::string> session;
};
BOOST_DESCRIBE_STRUCT(Args, (), (path, session))

constexpr std::size_t kMaxShown = 225'000;  // bytes; as base64 what RenderLimits allows one image

std::string image_type(std::string_view bytes) {
  if (bytes.starts_with("\x89PNG\r\n\x1a\n")) return "image/png";
  if (bytes.starts_with("\xFF\xD8\xFF")) return "image/jpeg";
  if (bytes.starts_with("RIFF") && bytes.substr(0, 12).ends_with("WEBP")) return "image/webp";
  return {};
}

std::string where(const Session& session, const sandbox::FileInfo& file,
                  const std::string& host_path) {
  std::string line = "/workspace/" + one_line(file.path) + ", " + size_text(file.size) +
                     "; resource " + file_uri(session.handle(), file.path);
  if (!host_path.empty()) line += "; on the server's machine: " + one_line(host_path);
  return line;
}

void add_text(Content& content, std::string_view bytes, std::uint64_t size) {
  content.line(plain_text(bytes));
  sandbox::Gap rest;
  rest.bytes = size - bytes.size();
  if (rest.bytes > 0) content.gap(rest);
}

// Where what was not shown, or not all of it, can be fetched; nothing over stdio.
void add_url(Content& content, Tickets& tickets, const Session& session, const std::string& path) {
  if (!tickets.offered()) return;
  auto minutes = tickets.limits().download_life.count() / 60;
  content.remark("to fetch the whole file, within " + std::to_string(minutes) +
                 " minutes: " + tickets.for_download(session, path));
}

awaitable<mcp::CallToolResult> show(Tickets& tickets, Session& session, const Args& args) {
  std::shared_ptr<sandbox::Files> files = co_await session.files();
  auto info = co_await files->stat(args.path);
  if (info.is_directory)
    throw mcp::ToolError("\"" + one_line(info.path) + "\" is a directory: use list_files.");
  std::string bytes = co_await files->read(args.path, 0, kMaxShown);
  bool whole = info.size <= bytes.size();
  std::string_view text = whole ? std::string_view(bytes) : without_cut_end(bytes);
  Content content{RenderLimits()};
  content.remark(where(session, info, files->host_path(info.path)));
  std::string mime = image_type(bytes);
  bool fits =
      whole && (!mime.empty() || (is_text(text) && text.size() <= RenderLimits().characters));
  if (!fits) add_url(content, tickets, session, args.path);
  if (!mime.empty() && whole)
    content.image(mime, bytes, "image, " + mime.substr(6));
  else if (!mime.empty())
    content.remark("not shown: the image is too large; make a smaller one with run_python");
  else if (is_text(text))
    add_text(content, text, std::max<std::uint64_t>(info.size, text.size()));
  else
    content.remark("not shown: binary content; read it with run_python, or fetch the resource");
  mcp::CallToolResult result;
  result.content = std::move(content).finish("");
  co_return result;
}

awaitable<mcp::CallToolResult> download(Sessions& sessions, Tickets& tickets, mcp::Call& call,
                                        Args args) {
  auto session = co_await sessions.resolve(call, args.session);
  session->touch();
  try {
    co_return co_await show(tickets, *session, args);
  } catch (const sandbox::FileError& failure) {
    throw mcp::ToolError(failure.what());
  }
}

}  // namespace

mcp::Tool download_file(Sessions& sessions, Tickets& tickets) {
  auto run = [&sessions, &tickets](mcp::Call& call, Args args) {
    return download(sessions, tickets, call, std::move(args));
  };
  return mcp::make_tool<Args>(tool_info("download_file"), run);
}

}  // namespace tools
