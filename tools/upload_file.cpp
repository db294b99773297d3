#include "tools/base64.hpp"
#include "tools/host_files.hpp"
#include "tools/resource_uri.hpp"
#include "tools/text.hpp"
#include "tools/tools.hpp"

namespace tools {

using mcp::ToolError;

namespace {

struct Args {
  std::optional<std::string> name;
  std::optional<std::string> path;
  std::optional<std::string> text;
  std::optional<std::string> base64;
  std::optional<std::string> session;
};
BOOST_DESCRIBE_STRUCT(Args, (), (name, path, text, base64, session))

struct Context {
  Sessions& sessions;
  boost::asio::thread_pool& pool;
  UploadPolicy policy;
};

void expect_one_source(const Args& args) {
  int sources = args.path.has_value() + args.text.has_value() + args.base64.has_value();
  if (sources != 1)
    throw ToolError("arguments: give exactly one of path, text, base64. Nothing was uploaded.");
}

// Where it goes: a file keeps its own name unless another is wished for.
std::string target_of(const Args& args) {
  if (args.name) return *args.name;
  if (!args.path)
    throw ToolError("arguments.name: required with text and base64. Nothing was uploaded.");
  return std::filesystem::path(*args.path).filename();
}

std::string content_of(const Args& args, std::uint64_t cap) {
  std::string bytes;
  if (args.text) {
    bytes = *args.text;
  } else {
    auto decoded = base64_decode(*args.base64);
    if (!decoded) throw ToolError("arguments.base64: not valid base64. Nothing was uploaded.");
    bytes = std::move(*decoded);
  }
  if (bytes.size() > cap)
    throw ToolError("The file has " + readable_size(bytes.size()) + "; the limit is " +
                    readable_size(cap) + ". Nothing was uploaded.");
  return bytes;
}

awaitable<sandbox::FileInfo> store(Context& context, Session& session, const Args& args,
                                   std::string target) {
  std::shared_ptr<sandbox::Files> files = session.files();
  if (!args.path) {
    std::string bytes = content_of(args, context.policy.max_bytes);
    co_return co_await files->write(target, std::move(bytes));
  }
  auto open = [&context, &args] { return open_host_file(context.policy.roots, *args.path); };
  HostFile file = co_await async::on_pool(context.pool, open);
  co_return co_await files->copy_in(target, file.get(), context.policy.max_bytes);
}

awaitable<mcp::CallToolResult> upload(Context& context, mcp::Call& call, Args args) {
  expect_one_source(args);
  std::string target = target_of(args);
  auto session = co_await context.sessions.resolve(call, args.session);
  session->touch();
  sandbox::FileInfo stored;
  try {
    stored = co_await store(context, *session, args, std::move(target));
  } catch (const sandbox::FileError& failure) {
    throw ToolError(failure.what());
  }
  co_return text_result("Uploaded " + readable_size(stored.size) + " to /workspace/" + stored.path +
                        " in session " + session->handle() + " (" +
                        file_uri(session->handle(), stored.path) + ").");
}

}  // namespace

mcp::Tool upload_file(Sessions& sessions, boost::asio::thread_pool& pool, UploadPolicy policy) {
  auto context = std::make_shared<Context>(Context{sessions, pool, std::move(policy)});
  return mcp::make_tool<Args>(tool_info("upload_file"), [context](mcp::Call& call, Args args) {
    return upload(*context, call, std::move(args));
  });
}

}  // namespace tools
