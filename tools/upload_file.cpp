#include "mcp/base64.hpp"
#include "tools/host_files.hpp"
#include "tools/resource_uri.hpp"
#include "tools/text.hpp"
#include "tools/tickets.hpp"
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
  Tickets& tickets;
};

// The client may be on another machine, whose files we cannot open: it is then told where to put
// them.
bool wants_ticket(const Context& context, const Args& args) {
  if (!context.tickets.offered() || args.text || args.base64) return false;
  return args.path ? context.policy.roots.empty() : args.name.has_value();
}

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
    auto decoded = mcp::base64_decode(*args.base64);
    if (!decoded) throw ToolError("arguments.base64: not valid base64. Nothing was uploaded.");
    bytes = std::move(*decoded);
  }
  if (bytes.size() > cap)
    throw ToolError("The file has " + size_text(bytes.size()) + "; the limit is " + size_text(cap) +
                    ". Nothing was uploaded.");
  return bytes;
}

awaitable<sandbox::FileInfo> store(Context& context, Session& session, const Args& args,
                                   std::string target) {
  std::shared_ptr<sandbox::Files> files = co_await session.files();
  if (!args.path) {
    std::string bytes = content_of(args, context.policy.max_bytes);
    co_return co_await files->write(target, std::move(bytes));
  }
  auto open = [&context, &args] { return open_host_file(context.policy.roots, *args.path); };
  HostFile file = co_await async::on_pool(context.pool, open);
  co_return co_await files->copy_in(target, file.get(), context.policy.max_bytes);
}

// For a shell: what is between the quotes means nothing to it.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

// A wrong target is refused now, not when the bytes have come.
awaitable<mcp::CallToolResult> give_ticket(Context& context, Session& session, const Args& args,
                                           std::string target) {
  std::shared_ptr<sandbox::Files> files = co_await session.files();
  co_await files->create(target);
  const TicketLimits& limits = context.tickets.limits();
  std::string url = context.tickets.for_upload(session, target);
  std::string place = target.starts_with('/') ? target : "/workspace/" + target;
  std::string source = args.path ? quoted(one_line(*args.path)) : "FILE";
  co_return text_result("Nothing was uploaded yet. To bring a file to " + one_line(place) +
                        " in session " + session.handle() + ", PUT its bytes (at most " +
                        size_text(limits.upload_bytes) + ") to this URL, once, within " +
                        std::to_string(limits.upload_life.count() / 60) +
                        " minutes:\ncurl --fail-with-body -T " + source + " " + url);
}

awaitable<mcp::CallToolResult> upload(Context& context, mcp::Call& call, Args args) {
  bool by_ticket = wants_ticket(context, args);
  if (!by_ticket) expect_one_source(args);
  std::string target = target_of(args);
  auto session = co_await context.sessions.resolve(call, args.session);
  session->touch();
  sandbox::FileInfo stored;
  try {
    if (by_ticket) co_return co_await give_ticket(context, *session, args, std::move(target));
    stored = co_await store(context, *session, args, std::move(target));
  } catch (const sandbox::FileError& failure) {
    throw ToolError(failure.what());
  }
  session->file_written(stored.path);
  co_return text_result("Uploaded " + size_text(stored.size) + " to /workspace/" + stored.path +
                        " in session " + session->handle() + " (" +
                        file_uri(session->handle(), stored.path) + ").");
}

}  // namespace

mcp::Tool upload_file(Sessions& sessions, boost::asio::thread_pool& pool, UploadPolicy policy,
                      Tickets& tickets) {
  auto context = std::make_shared<Context>(Context{sessions, pool, std::move(policy), tickets});
  return mcp::make_tool<Args>(tool_info("upload_file"), [context](mcp::Call& call, Args args) {
    return upload(*context, call, std::move(args));
  });
}

}  // namespace tools
