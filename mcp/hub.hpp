#pragma once

// What has changed, and who wants to hear of it.

#include <boost/asio/any_io_executor.hpp>
#include <boost/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "async/async.hpp"

namespace mcp {

using async::awaitable;

enum class List { tools, prompts, resources };

struct Interests {
  std::set<List> lists;
  std::set<std::string> uris;  // of resources
};

class Subscription;

// Where changes are told, by whoever makes them, and passed on to the subscriptions. Costs next to
// nothing while there are none. `principal`: whose client may hear of it; nullopt: everyone's.
class Hub {
 public:
  using Whose = std::optional<std::string_view>;

  void list_changed(List list, Whose principal = std::nullopt);
  void resource_updated(const std::string& uri, Whose principal = std::nullopt);
  // The same for every URI below `prefix` that somebody subscribed to.
  void resources_updated(std::string_view prefix, Whose principal = std::nullopt);

  std::size_t size() const { return subscriptions_.size(); }

 private:
  friend class Subscription;
  std::set<Subscription*> subscriptions_;
};

// What one client wants to hear of, and what of that has changed since it was last told. However
// slowly it listens, nothing is lost and nothing piles up: a thing that changed twice meanwhile is
// told once.
class Subscription {
 public:
  static constexpr std::size_t kMaxUris = 256;
  static constexpr std::size_t kMaxUriBytes = 64 << 10;  // of all of them

  // The hub outlives it.
  Subscription(boost::asio::any_io_executor executor, Hub& hub, std::string principal);
  ~Subscription();
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;

  const Interests& interests() const { return interests_; }
  // Both throw Error (invalid_params) past the limits, and change nothing then.
  void want(Interests interests);  // instead of what it wanted so far
  void want(const std::string& uri);
  void unwant(const std::string& uri);

  // The notifications that are due, and no longer are then.
  std::vector<boost::json::object> take();
  // Returns once some are, or end() was called.
  awaitable<void> due();

  void end();
  bool ended() const { return ended_; }

 private:
  friend class Hub;
  bool hears(const Hub::Whose& principal) const;
  void note(List list);
  void note(const std::string& uri);

  Hub& hub_;
  std::string principal_;
  async::Changed changed_;
  Interests interests_;
  Interests changes_;  // a subset of interests_
  bool ended_ = false;
};

}  // namespace mcp
