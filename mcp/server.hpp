#pragma once

#include <boost/json.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mcp/peer.hpp"
#include "mcp/questions.hpp"
#include "mcp/tool.hpp"

namespace mcp {

struct Request;

// The protocol, without any transport: one message in, the messages it causes out.
class Server {
 public:
  // `resources` may be null: then none are offered. It outlives the server.
  Server(Implementation self, std::string instructions, std::vector<Tool> tools,
         Resources* resources);

  // Returns once everything `message` caused has been sent. Never throws for what a client sends.
  // `message` is any JSON value; `peer` and `out` outlive the call. Requests run concurrently: the
  // transport starts one handle() a message, in the order of arrival, and does not await one before
  // it starts the next (otherwise a cancellation would never be seen). When it is cancelled itself,
  // the call it serves is cancelled, and nothing is sent any more.
  awaitable<void> handle(boost::json::value message, Peer& peer, Outbox& out);

  // The reply to bytes that are not JSON (-32700), or to a line past the transport's cap (-32600).
  static boost::json::object refusal(ErrorCode code, std::string_view text);

 private:
  struct Method;
  static const std::map<std::string_view, Method>& methods();
  template <auto Handler>
  static awaitable<boost::json::object> typed(Server& self, Request& request);
  const Method& method_for(const Request& request) const;

  // Null: nothing is to be answered.
  awaitable<boost::json::value> answer(boost::json::value message, Peer& peer, Outbox& out);
  awaitable<boost::json::value> answer_batch(boost::json::array messages, Peer& peer, Outbox& out);
  awaitable<boost::json::value> answer_request(boost::json::object message, Peer& peer,
                                               Outbox& out);
  awaitable<boost::json::value> serve(Request request);

  awaitable<InitializeResult> initialize(Request&, InitializeParams);
  awaitable<DiscoverResult> discover(Request&, Empty);
  awaitable<Empty> ping(Request&, Empty);
  awaitable<Empty> set_level(Request&, SetLevelParams);
  awaitable<ListToolsResult> list_tools(Request&, ListParams);
  awaitable<boost::json::object> call_tool(Request&, CallToolParams);
  awaitable<ListResourcesResult> list_resources(Request&, ListParams);
  awaitable<ListResourceTemplatesResult> list_templates(Request&, ListParams);
  awaitable<ReadResourceResult> read_resource(Request&, ReadResourceParams);

  boost::json::object capabilities() const;
  std::optional<std::string> instructions() const;

  Implementation self_;
  std::string instructions_;
  std::vector<Tool> tools_;
  Resources* resources_;
  Questions questions_;
};

}  // namespace mcp
