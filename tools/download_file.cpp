#include "tools/content.hpp"
#include "tools/resource_uri.hpp"
#include "tools/text.hpp"
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

bool is_text(std::string_view bytes) {
  return bytes.find('\0') == bytes.npos && valid_utf8(bytes) == bytes;
}

std::string where(const Session& session, const sandbox::FileInfo& file,
                  const std::string& host_path) {
  std::string line = "/workspace/" + valid_utf8(file.path) + ", " + readable_size(file.size) +
                     "; resource " + file_uri(session.handle(), file.path);
  if (!host_path.empty()) line += "; on the server's machine: " + valid_utf8(host_path);
  return line;
}

awaitable<mcp::CallToolResult> show(Session& session, const Args& args) {
  sandbox::Files& files = session.files();
  auto info = co_await files.stat(args.path);
  if (info.is_directory)
    throw mcp::ToolError("\"" + args.path + "\" is a directory: use list_files.");
  std::string bytes = co_await files.read(args.path, 0, kMaxShown);
  Content content{RenderLimits()};
  content.remark(where(session, info, files.host_path(info.path)));
  std::string mime = image_type(bytes);
  if (!mime.empty() && info.size <= bytes.size()) {
    content.image(mime, bytes, "image, " + mime.substr(6));
  } else if (mime.empty() &&
             is_text(std::string_view(bytes).substr(0, bytes.size() - bytes.size() % 4))) {
    content.line(valid_utf8(bytes));
    if (info.size > bytes.size()) {
      sandbox::Gap rest;
      rest.bytes = info.size - bytes.size();
      content.gap(rest);
    }
  } else {
    content.remark("not shown: binary content; read it with run_python, or fetch the resource");
  }
  mcp::CallToolResult result;
  result.content = std::move(content).finish("");
  co_return result;
}

awaitable<mcp::CallToolResult> download(Sessions& sessions, mcp::Call& call, Args args) {
  auto session = co_await sessions.resolve(call, args.session);
  session->touch();
  try {
    co_return co_await show(*session, args);
  } catch (const sandbox::FileError& failure) {
    throw mcp::ToolError(failure.what());
  }
}

}  // namespace

mcp::Tool download_file(Sessions& sessions) {
  return mcp::make_tool<Args>(tool_info("download_file"), [&sessions](mcp::Call& call, Args args) {
    return download(sessions, call, std::move(args));
  });
}

}  // namespace tools
