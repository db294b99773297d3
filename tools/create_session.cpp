#include "tools/text.hpp"
#include "tools/tools.hpp"

namespace tools {

namespace {

struct Args {
  std::optional<std::string> name;
  std::optional<std::string> template_;
  std::optional<bool> network;
};
BOOST_DESCRIBE_STRUCT(Args, (), (name, template_, network))

constexpr std::size_t kMaxName = 64;

void check_name(const std::string& name) {
  bool fits = !name.empty() && characters(name) <= kMaxName && plain_text(name) == name &&
              name.find('\n') == name.npos;
  if (!fits)
    throw mcp::ToolError("arguments.name: expected 1 to " + std::to_string(kMaxName) +
                         " characters on one line. No session was made.");
}

awaitable<mcp::CallToolResult> create(Sessions& sessions, mcp::Call& call, Args args) {
  if (args.name) check_name(*args.name);
  Sessions::Wish wish;
  wish.name = args.name.value_or("");
  wish.python = args.template_.value_or("");
  wish.network = args.network.value_or(false);
  auto session = co_await sessions.create(call.peer().principal, wish);
  const auto& record = session->record();
  std::string text = "Created session " + record.id + ". Pass session=\"" + record.id +
                     "\" to the other tools. Template: " + record.python +
                     ". Network: " + (record.network ? "on" : "off") +
                     ". Its kernel starts with the first run_python.";
  co_return text_result(std::move(text));
}

}  // namespace

mcp::Tool create_session(Sessions& sessions) {
  return mcp::make_tool<Args>(tool_info("create_session"), [&sessions](mcp::Call& call, Args args) {
    return create(sessions, call, std::move(args));
  });
}

}  // namespace tools
