// How clients hear of changes, in both eras.

#include <doctest/doctest.h>

#include "mcp/hub.hpp"
#include "tests/mcp/conversation.hpp"

namespace {

constexpr const char* kWatched = "test://here";

mcp::Offer announcing(mcp::Hub& hub) {
  mcp::Offer offer;
  offer.hub = &hub;
  offer.lists_change = {mcp::List::tools};
  return offer;
}

std::string listen(int id, std::string wanted) {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) +
         R"(,"method":"subscriptions/listen","params":)" + modern(R"("notifications":)" + wanted) +
         "}";
}

std::string updated(const std::string& uri, const std::string& meta = "") {
  return R"({"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":")" + uri +
         "\"" + (meta.empty() ? "" : R"(,"_meta":)" + meta) + "}}";
}

const std::string kToolsChanged =
    R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{}})";
const std::string kTag = R"({"io.modelcontextprotocol/subscriptionId":7})";

}  // namespace

TEST_CASE("only what is told of is advertised") {
  mcp::Hub hub;
  Conversation client(announcing(hub));
  json::value legacy = client.initialize("2025-11-25").at("capabilities");
  json::value modern_ones = client.result("server/discover", modern()).at("capabilities");
  CHECK(legacy == modern_ones);
  CHECK(
      legacy ==
      json::parse(R"({"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{}})"));
  Conversation silent;
  CHECK(silent.initialize("2025-11-25").at("capabilities") ==
        json::parse(R"({"tools":{},"resources":{},"logging":{}})"));
}

TEST_CASE("a legacy client hears of lists, and of the resources it subscribed to") {
  mcp::Hub hub;
  Conversation client(announcing(hub));
  client.open_standing();
  hub.list_changed(mcp::List::tools);  // before the handshake nothing is said
  client.initialize("2025-11-25");
  hub.resource_updated(kWatched);
  client.settle();
  CHECK(client.sent().empty());

  client.result("resources/subscribe", R"({"uri":"test://here"})");
  hub.resource_updated(kWatched);
  hub.resource_updated("test://other");
  hub.list_changed(mcp::List::tools);
  hub.list_changed(mcp::List::prompts);  // is not told of
  client.settle();
  CHECK(client.sent() == std::vector<std::string>{kToolsChanged, updated(kWatched)});

  client.result("resources/unsubscribe", R"({"uri":"test://here"})");
  hub.resource_updated(kWatched);
  client.settle();
  CHECK(client.sent().empty());
}

TEST_CASE("what changes while nothing can be sent is told once, later") {
  mcp::Hub hub;
  Conversation client(announcing(hub));
  client.initialize("2025-11-25");
  client.result("resources/subscribe", R"({"uri":"test://here"})");
  for (int i = 0; i < 1000; ++i) hub.resource_updated(kWatched);
  client.open_standing();
  CHECK(client.sent() == std::vector<std::string>{updated(kWatched)});
  client.close_standing();
  hub.resource_updated(kWatched);
  client.settle();
  CHECK(client.sent().empty());
  client.open_standing();
  CHECK(client.sent() == std::vector<std::string>{updated(kWatched)});
}

TEST_CASE("a peer that outlived a restart of the server hears of lists again") {
  mcp::Hub hub;
  Conversation client(announcing(hub));
  client.peer.legacy = mcp::Peer::Legacy{mcp::Revision::v2025_11_25, {}};
  client.open_standing();
  hub.list_changed(mcp::List::tools);
  client.settle();
  CHECK(client.sent() == std::vector<std::string>{kToolsChanged});
}

TEST_CASE("nobody hears of what belongs to somebody else") {
  mcp::Hub hub;
  Conversation client(announcing(hub));
  client.peer.principal = "ada";
  client.initialize("2025-11-25");
  client.open_standing();
  client.result("resources/subscribe", R"({"uri":"test://here"})");
  hub.resource_updated(kWatched, "bob");
  hub.resources_updated("test://", "bob");
  hub.list_changed(mcp::List::tools, "bob");
  client.settle();
  CHECK(client.sent().empty());
  hub.resources_updated("test://h", "ada");
  hub.resources_updated("test://i", "ada");
  client.settle();
  CHECK(client.sent() == std::vector<std::string>{updated(kWatched)});
}

TEST_CASE("subscriptions of one client are bounded") {
  mcp::Hub hub;
  Conversation client(announcing(hub));
  client.initialize("2025-11-25");
  auto subscribe = [&](const std::string& uri) {
    return client.result("resources/subscribe", R"({"uri":")" + uri + "\"}");
  };
  for (std::size_t i = 0; i < mcp::Subscription::kMaxUris; ++i)
    CHECK(subscribe("test://" + std::to_string(i)) == json::object());
  CHECK(subscribe("test://0") == json::object());  // is among them
  CHECK(subscribe("test://more").at("code") == -32602);
  client.initialize("2025-11-25");  // a new start
  CHECK(subscribe(std::string(mcp::Subscription::kMaxUriBytes + 1, 'u')).at("code") == -32602);
  CHECK(subscribe("test://more") == json::object());
}

TEST_CASE("a listening client is told first what it will hear of, then of that alone") {
  mcp::Hub hub;
  Conversation client(announcing(hub));
  client.start(listen(7,
                      R"({"toolsListChanged":true,"promptsListChanged":true,)"
                      R"("resourcesListChanged":false,"resourceSubscriptions":["test://here"]})"));
  CHECK(client.sent() ==
        std::vector<std::string>{
            R"({"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{)"
            R"("notifications":{"toolsListChanged":true,"resourceSubscriptions":["test://here"]},)"
            R"("_meta":)" +
            kTag + "}}"});
  hub.list_changed(mcp::List::prompts);
  hub.list_changed(mcp::List::resources);
  hub.resource_updated("test://other");
  client.settle();
  CHECK(client.sent().empty());
  hub.list_changed(mcp::List::tools);
  hub.resource_updated(kWatched);
  client.settle();
  CHECK(client.sent() ==
        std::vector<std::string>{
            R"({"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":)" +
                kTag + "}}",
            updated(kWatched, kTag)});
}

TEST_CASE("a subscription ends by its cancellation without, by the server with an answer") {
  mcp::Hub hub;
  Conversation client(announcing(hub));
  client.start(listen(7, R"({"toolsListChanged":true})"));
  client.start(listen(8, R"({"toolsListChanged":true})"));
  client.sent();
  client.start(R"({"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":8}})");
  CHECK(client.sent().empty());
  CHECK(client.serving() == 1);
  mcp::Peer other;
  client.server.end_subscriptions(&other);
  client.settle();
  CHECK(client.serving() == 1);
  client.server.end_subscriptions(&client.peer);
  REQUIRE(client.run());
  std::vector<std::string> sent = client.sent();
  REQUIRE(sent.size() == 1);
  json::value answer = json::parse(sent[0]);
  CHECK(answer.at("id") == 7);
  CHECK(answer.at("result").at("resultType") == "complete");
  CHECK(answer.at("result").at("_meta").at("io.modelcontextprotocol/subscriptionId") == 7);
  CHECK(hub.size() == 0);
}

TEST_CASE("open subscriptions are bounded in number") {
  mcp::Hub hub;
  Conversation client(announcing(hub));
  std::vector<std::unique_ptr<mcp::Peer>> peers;
  for (std::size_t i = 0; i <= mcp::Server::kMaxListening; ++i) {
    if (i % 512 == 0) peers.push_back(std::make_unique<mcp::Peer>());
    client.start_as(*peers.back(), listen(static_cast<int>(i), "{}"));
  }
  REQUIRE(client.out.messages.size() == mcp::Server::kMaxListening + 1);
  json::value last = client.out.messages.back();
  CHECK(last.at("error").at("code") == -32603);
  CHECK(last.at("error").at("message") == "Subscription limit reached");
  client.server.end_subscriptions();
  REQUIRE(client.run());
}

TEST_CASE("a malformed wish is refused") {
  mcp::Hub hub;
  Conversation client(announcing(hub));
  for (const char* wanted :
       {"5", "[]", R"({"toolsListChanged":1})", R"({"resourceSubscriptions":"test://here"})",
        R"({"resourceSubscriptions":[5]})"}) {
    CAPTURE(wanted);
    CHECK(client.ask(listen(7, wanted)).at("error").at("code") == -32602);
  }
  CHECK(client.result("subscriptions/listen", modern()).at("code") == -32602);
}
