#include "mcp/hub.hpp"

#include "mcp/error.hpp"
#include "mcp/reply.hpp"

namespace mcp {

namespace json = boost::json;

namespace {

void check(const std::set<std::string>& uris) {
  std::size_t bytes = 0;
  for (const std::string& uri : uris) bytes += uri.size();
  if (uris.size() > Subscription::kMaxUris || bytes > Subscription::kMaxUriBytes)
    throw Error(ErrorCode::invalid_params,
                "Too many resources: one client may subscribe to " +
                    std::to_string(Subscription::kMaxUris) + ", and their URIs may have " +
                    std::to_string(Subscription::kMaxUriBytes) + " bytes together");
}

std::string_view method_of(List list) {
  switch (list) {
    case List::tools:
      return "notifications/tools/list_changed";
    case List::prompts:
      return "notifications/prompts/list_changed";
    case List::resources:
      break;
  }
  return "notifications/resources/list_changed";
}

}  // namespace

void Hub::list_changed(List list, Whose principal) {
  for (Subscription* one : subscriptions_)
    if (one->hears(principal)) one->note(list);
}

void Hub::resource_updated(const std::string& uri, Whose principal) {
  for (Subscription* one : subscriptions_)
    if (one->hears(principal)) one->note(uri);
}

void Hub::resources_updated(std::string_view prefix, Whose principal) {
  for (Subscription* one : subscriptions_) {
    if (!one->hears(principal)) continue;
    const std::set<std::string>& uris = one->interests_.uris;
    for (auto uri = uris.lower_bound(std::string(prefix));
         uri != uris.end() && uri->starts_with(prefix); ++uri)
      one->note(*uri);
  }
}

Subscription::Subscription(boost::asio::any_io_executor executor, Hub& hub, std::string principal)
    : hub_(hub), principal_(std::move(principal)), changed_(executor) {
  hub_.subscriptions_.insert(this);
}

Subscription::~Subscription() { hub_.subscriptions_.erase(this); }

void Subscription::want(Interests interests) {
  check(interests.uris);
  interests_ = std::move(interests);
  changes_ = Interests();
}

void Subscription::want(const std::string& uri) {
  std::set<std::string> uris = interests_.uris;
  uris.insert(uri);
  check(uris);
  interests_.uris = std::move(uris);
}

void Subscription::unwant(const std::string& uri) {
  interests_.uris.erase(uri);
  changes_.uris.erase(uri);
}

std::vector<json::object> Subscription::take() {
  std::vector<json::object> due;
  for (List list : changes_.lists) due.push_back(notification(method_of(list), json::object()));
  for (const std::string& uri : changes_.uris) {
    json::object params;
    params["uri"] = uri;
    due.push_back(notification("notifications/resources/updated", std::move(params)));
  }
  changes_ = Interests();
  return due;
}

awaitable<void> Subscription::due() {
  while (changes_.lists.empty() && changes_.uris.empty() && !ended_) co_await changed_.wait();
}

void Subscription::end() {
  ended_ = true;
  changed_.notify();
}

bool Subscription::hears(const Hub::Whose& principal) const {
  return !principal || *principal == principal_;
}

void Subscription::note(List list) {
  if (interests_.lists.contains(list) && changes_.lists.insert(list).second) changed_.notify();
}

void Subscription::note(const std::string& uri) {
  if (interests_.uris.contains(uri) && changes_.uris.insert(uri).second) changed_.notify();
}

}  // namespace mcp
