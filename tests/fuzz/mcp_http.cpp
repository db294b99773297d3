// A client of MCP over HTTP: requests, one after the other, in blocks that a line "%%" separates.
// In a target and in a header's value, $SESSION, $EVENT and $MESSAGES stand for what the server
// said last. A block "leave" closes all connections; "stream" as the first has every answer come as
// an event stream.
//
//   POST /mcp
//   Mcp-Session-Id: $SESSION
//
//   {"jsonrpc":"2.0","id":1,"method":"tools/list"}

#include <spdlog/spdlog.h>

#include <algorithm>

#include "tests/fuzz/conversation.hpp"

namespace {

constexpr std::size_t kMaxBlocks = 12;

std::string filled_in(std::string_view text, const FuzzedConversation& conversation) {
  std::string out(text);
  const std::pair<std::string_view, const std::string*> kMarks[] = {
      {"$SESSION", &conversation.session},
      {"$EVENT", &conversation.event},
      {"$MESSAGES", &conversation.messages},
  };
  for (const auto& [mark, value] : kMarks)
    if (std::size_t at = out.find(mark); at != out.npos) out.replace(at, mark.size(), *value);
  return out;
}

void send(std::string_view block, FuzzedConversation& conversation) {
  std::string_view head = cut(block, "\n\n"), line = cut(head, "\n");
  transport::http::Request request;
  request.method = cut(line, " ");
  std::string target = filled_in(line, conversation);
  auto visible = [](char c) { return c > ' ' && c < 0x7f; };
  if (!std::ranges::all_of(target, visible) || !target.starts_with('/')) return;  // the parser's
  if (!std::ranges::all_of(request.method, visible)) return;
  request.path = target.substr(0, target.find('?'));
  if (request.path.size() < target.size()) request.query = target.substr(request.path.size() + 1);
  while (!head.empty()) {
    std::string_view value = cut(head, "\n"), name = cut(value, ":");
    // What the parser lets through: printable ASCII and bytes beyond it.
    auto unreadable = [](unsigned char c) { return c < ' ' || c == 0x7f; };
    if (name.empty() || std::ranges::any_of(value, unreadable)) continue;
    while (value.starts_with(' ')) value.remove_prefix(1);
    request.headers.emplace(name, filled_in(value, conversation));
  }
  if (!block.empty() && !request.header("Content-Type"))
    request.headers.emplace("Content-Type", "application/json");
  conversation.send(std::move(request), std::string(block));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  spdlog::set_level(spdlog::level::off);
  std::string_view text = as_text(data, size);
  bool streams = text.starts_with("stream\n%%\n");
  if (streams) cut(text, "%%\n");
  FuzzedConversation conversation(streams);
  for (std::size_t block = 0; block < kMaxBlocks && !text.empty(); ++block) {
    std::string_view one = cut(text, "\n%%\n");
    if (one == "leave")
      conversation.leave();
    else
      send(one, conversation);
  }
  return 0;
}
