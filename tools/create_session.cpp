#include "mcp/error.hpp"
#include "tools/name.hpp"
#include "tools/tools.hpp"

namespace tools {

namespace {

struct Args {
  std::optional<std::string> name;
  std::optional<std::string> template_;
  std::optional<bool> network;
};
BOOST_DESCRIBE_STRUCT(Args, (), (name, template_, network))

awaitable<mcp::CallToolResult> create(Sessions& sessions, mcp::Call& call, Args args) {
  if (args.name) check_name(*args.name, "No session was made.");
  // A path would let the model choose what of this machine is mounted.
  if (args.template_ && args.template_->find('/') != std::string::npos)
    throw mcp::ToolError(
        "arguments.template: expected the name of a template, not a path. No session was made.");
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
  if (std::string note = sessions.capabilities().session_note; !note.empty()) text += " " + note;
  co_return text_result(std::move(text));
}

}  // namespace

mcp::Tool create_session(Sessions& sessions) {
  return mcp::make_tool<Args>(tool_info("create_session"), [&sessions](mcp::Call& call, Args args) {
    return create(sessions, call, std::move(args));
  });
}

}  // namespace tools
