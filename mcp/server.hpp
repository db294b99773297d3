#pragma once

#include <boost/json.hpp>
#include <functional>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/hub.hpp"
#include "mcp/mirrored.hpp"
#include "mcp/peer.hpp"
#include "mcp/prompt.hpp"
#include "mcp/questions.hpp"
#include "mcp/tool.hpp"

namespace mcp {

struct Request;

// What a server has to offer: just this is advertised, and nothing else is served. Pointers may be
// null; what they point to outlives the server.
struct Offer {
  std::vector<Tool> tools;
  std::vector<Prompt> prompts;
  Resources* resources = nullptr;
  Completer complete;           // may be empty
  Hub* hub = nullptr;           // where changes of resources and lists are told
  std::set<List> lists_change;  // whose changes are told
  // Called when a client has listed the tools: it is no mere probe, and may call one soon.
  std::function<void()> tools_listed;  // may be empty
};

// The protocol, without any transport: one message in, the messages it causes out.
class Server {
 public:
  // Open subscriptions/listen of all clients together.
  static constexpr std::size_t kMaxListening = 1024;

  // Throws std::invalid_argument for a tool whose x-mcp-header annotations are not allowed.
  Server(Implementation self, std::string instructions, Offer offer);
  Server(Implementation self, std::string instructions, std::vector<Tool> tools,
         Resources* resources);

  // Returns once everything `message` caused has been sent. Never throws for what a client sends.
  // `message` is any JSON value; `peer` and `out` outlive the call. Requests run concurrently: the
  // transport starts one handle() a message, in the order of arrival, and does not await one before
  // it starts the next (otherwise a cancellation would never be seen). When it is cancelled itself,
  // the call it serves is cancelled, and nothing is sent any more. `origin` is what the transport
  // calls the request that brought the message, for logs.
  awaitable<void> handle(boost::json::value message, Peer& peer, Outbox& out,
                         std::string origin = std::string());

  // Sends a legacy client what belongs to none of its requests (lists that changed, resources it
  // subscribed to), until cancelled. For the transport to run while it has a way for that: over
  // stdio always, over HTTP while a GET stream or an SSE connection is open; one at a time a peer.
  // What changes in between is told then.
  awaitable<void> announce(Peer& peer, Outbox& out);

  // Answers the open subscriptions/listen, those of `peer` or of everyone, with their empty result:
  // for a transport that ends. Otherwise they end by their cancellation only.
  void end_subscriptions(const Peer* peer = nullptr);

  // The arguments of a tools/call that a modern client has to repeat as headers, in the order of
  // the schema; empty for any other message, and for arguments that are no object.
  std::vector<MirroredArgument> mirrored_arguments(const boost::json::object& message) const;

  // The reply to bytes that are not JSON (-32700), or to a line past the transport's cap (-32600).
  static boost::json::object refusal(ErrorCode code, std::string_view text);

 private:
  struct Method;
  static const std::map<std::string_view, Method>& methods();
  template <auto Handler>
  static awaitable<boost::json::object> typed(Server& self, Request& request);
  const Method& method_for(const Request& request) const;
  bool offers(const Method& method) const;

  // Null: nothing is to be answered.
  awaitable<boost::json::value> answer(boost::json::value message, Peer& peer, Outbox& out,
                                       std::string origin);
  awaitable<boost::json::value> answer_batch(boost::json::array messages, Peer& peer, Outbox& out,
                                             std::string origin);
  awaitable<boost::json::value> answer_request(boost::json::object message, Peer& peer, Outbox& out,
                                               std::string origin);
  awaitable<boost::json::value> serve(Request request);

  awaitable<InitializeResult> initialize(Request&, InitializeParams);
  awaitable<DiscoverResult> discover(Request&, Empty);
  awaitable<Empty> ping(Request&, Empty);
  awaitable<Empty> set_level(Request&, SetLevelParams);
  awaitable<ListToolsResult> list_tools(Request&, ListParams);
  awaitable<CallToolResult> call_tool(Request&, CallToolParams);
  awaitable<ListResourcesResult> list_resources(Request&, ListParams);
  awaitable<ListResourceTemplatesResult> list_templates(Request&, ListParams);
  awaitable<ReadResourceResult> read_resource(Request&, ReadResourceParams);
  awaitable<Empty> subscribe(Request&, SubscribeParams);
  awaitable<Empty> unsubscribe(Request&, SubscribeParams);
  awaitable<boost::json::object> listen(Request&, ListenParams);
  awaitable<ListPromptsResult> list_prompts(Request&, ListParams);
  awaitable<GetPromptResult> get_prompt(Request&, GetPromptParams);
  awaitable<CompleteResult> complete_argument(Request&, CompleteParams);

  boost::json::object capabilities(Revision revision) const;
  std::optional<std::string> instructions() const;
  bool announces(List list) const { return offer_.hub && offer_.lists_change.contains(list); }
  bool announces_resources() const { return offer_.hub && offer_.resources; }
  bool announces_anything() const;

  // What a request says about questions that an earlier one ended with. The result to answer it
  // with, if some are still unanswered.
  std::optional<boost::json::object> take_answers(Request& request);
  boost::json::object input_required(const Request& request, InputRequired asked);

  Subscription& subscription_of(Peer& peer, boost::asio::any_io_executor executor);
  Interests honoured(const Notifications& wanted) const;

  struct Listening {
    const Peer* peer;
    Subscription* subscription;
  };

  Implementation self_;
  std::string instructions_;
  Offer offer_;
  std::map<std::string, std::vector<Mirror>> mirrors_;  // by tool; those that have some
  Questions questions_;
  std::list<Listening> listening_;
};

}  // namespace mcp
