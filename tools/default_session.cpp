#include "tools/default_session.hpp"

#include <string_view>

namespace tools {

namespace json = boost::json;

namespace {

// What known hosts call a conversation in `_meta`. Self-reported, so only ever a default within one
// principal, never an identity.
constexpr std::string_view kConversationKeys[] = {"vscode.conversationId",
                                                  "openai/session",
                                                  "threadId",
                                                  "sessionId",
                                                  "sessionID",
                                                  "ai.opencode/sessionID",
                                                  "antigravity.google/conversation_id"};
constexpr std::size_t kMaxConversationId = 256;

std::string conversation_of(const mcp::Call& call) {
  for (std::string_view key : kConversationKeys) {
    const json::value* id = call.meta().if_contains(key);
    if (id && id->is_string() && !id->get_string().empty() &&
        id->get_string().size() <= kMaxConversationId)
      return std::string(key) + "=" + std::string(id->get_string());
  }
  return {};
}

}  // namespace

std::string default_key(const mcp::Call& call) {
  const mcp::Peer& peer = call.peer();
  if (!peer.transport_session.empty())
    return peer.principal + "\ntransport " + peer.transport_session;
  std::string conversation = conversation_of(call);
  if (!conversation.empty()) return peer.principal + "\nconversation " + conversation;
  if (peer.has_default_session) return peer.principal + "\nprocess";
  return {};
}

bool is_process_default(const mcp::Call& call) {
  return call.peer().has_default_session && call.peer().transport_session.empty() &&
         conversation_of(call).empty();
}

}  // namespace tools
