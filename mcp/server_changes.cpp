// How clients hear of changes: resources/subscribe and announcements in the legacy era,
// subscriptions/listen in the modern one.

#include "mcp/envelope.hpp"
#include "mcp/error.hpp"
#include "mcp/reply.hpp"
#include "mcp/request.hpp"
#include "mcp/server.hpp"
#include "schemas/codec.hpp"

namespace mcp {

namespace json = boost::json;

namespace {

Notifications as_wire(const Interests& interests) {
  Notifications out;
  if (interests.lists.contains(List::tools)) out.toolsListChanged = true;
  if (interests.lists.contains(List::prompts)) out.promptsListChanged = true;
  if (interests.lists.contains(List::resources)) out.resourcesListChanged = true;
  if (!interests.uris.empty())
    out.resourceSubscriptions.emplace(interests.uris.begin(), interests.uris.end());
  return out;
}

// Every message of a subscription names it by its request's id.
void tag(json::object& fields, const json::value& id) {
  json::object& meta = fields["_meta"].emplace_object();
  meta[kSubscriptionIdKey] = id;
}

}  // namespace

bool Server::announces_anything() const {
  return announces_resources() || (offer_.hub && !offer_.lists_change.empty());
}

// A peer that outlived a restart of the server has made its handshake, but lost its subscriptions.
Subscription& Server::subscription_of(Peer& peer, boost::asio::any_io_executor executor) {
  if (!peer.subscription) {
    peer.subscription = std::make_unique<Subscription>(executor, *offer_.hub, peer.principal);
    Interests interests;
    if (peer.legacy) interests.lists = offer_.lists_change;
    peer.subscription->want(std::move(interests));
  }
  return *peer.subscription;
}

// A resource need not be there (yet), and nothing is said about whose it is: who may not read it
// just never hears of it.
awaitable<Empty> Server::subscribe(Request& request, SubscribeParams params) {
  auto executor = co_await boost::asio::this_coro::executor;
  subscription_of(request.peer, executor).want(params.uri);
  co_return Empty();
}

awaitable<Empty> Server::unsubscribe(Request& request, SubscribeParams params) {
  if (request.peer.subscription) request.peer.subscription->unwant(params.uri);
  co_return Empty();
}

awaitable<void> Server::announce(Peer& peer, Outbox& out) {
  if (!announces_anything()) co_return;
  auto executor = co_await boost::asio::this_coro::executor;
  Subscription& subscription = subscription_of(peer, executor);
  while (!subscription.ended()) {
    co_await subscription.due();
    for (json::object& message : subscription.take()) co_await out.send(std::move(message));
  }
}

Interests Server::honoured(const Notifications& wanted) const {
  Interests out;
  if (wanted.toolsListChanged.value_or(false) && announces(List::tools))
    out.lists.insert(List::tools);
  if (wanted.promptsListChanged.value_or(false) && announces(List::prompts))
    out.lists.insert(List::prompts);
  if (wanted.resourcesListChanged.value_or(false) && announces(List::resources))
    out.lists.insert(List::resources);
  if (wanted.resourceSubscriptions && announces_resources())
    out.uris.insert(wanted.resourceSubscriptions->begin(), wanted.resourceSubscriptions->end());
  return out;
}

awaitable<json::object> Server::listen(Request& request, ListenParams params) {
  if (listening_.size() >= kMaxListening)
    throw Error(ErrorCode::internal_error, "Subscription limit reached");
  auto executor = co_await boost::asio::this_coro::executor;
  Subscription subscription(executor, *offer_.hub, request.peer.principal);
  subscription.want(honoured(params.notifications));

  struct Listed {
    std::list<Listening>& all;
    std::list<Listening>::iterator own;
    ~Listed() { all.erase(own); }
  };
  listening_.push_back(Listening{&request.peer, &subscription});
  Listed listed{listening_, std::prev(listening_.end())};

  json::object acknowledged;
  acknowledged["notifications"] = schemas::encode(as_wire(subscription.interests()));
  tag(acknowledged, request.id);
  json::object message =
      notification("notifications/subscriptions/acknowledged", std::move(acknowledged));
  co_await request.out.send(std::move(message));
  while (!subscription.ended()) {
    co_await subscription.due();
    for (json::object& one : subscription.take()) {
      tag(one.at("params").get_object(), request.id);
      co_await request.out.send(std::move(one));
    }
  }
  json::object result;
  tag(result, request.id);
  co_return result;
}

void Server::end_subscriptions(const Peer* peer) {
  for (Listening& one : listening_)
    if (!peer || one.peer == peer) one.subscription->end();
}

}  // namespace mcp
