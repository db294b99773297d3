// Which session a call means, above all one that names none.

#include "tools/default_session.hpp"
#include "tools/identifiers.hpp"
#include "tools/sessions.hpp"

namespace tools {

awaitable<std::shared_ptr<Session>> Sessions::resolve(const mcp::Call& call,
                                                      const std::optional<std::string>& handle) {
  const std::string& principal = call.peer().principal;
  if (handle && !handle->empty()) co_return co_await open_or_explain(principal, *handle);

  std::string key = default_key(call);
  if (key.empty()) {
    Wish wish;
    co_return co_await create(principal, wish);
  }
  auto deadline = std::chrono::steady_clock::now() + policy_.hand_over;
  for (;;) {
    auto turn = co_await opening_.take();  // fifty first calls at once make one session
    auto session = co_await find_default(call, key, std::chrono::steady_clock::now() >= deadline);
    if (session) defaults_[key] = session->handle();
    if (session) co_return session;
    turn.reset();  // not to be in the way of other sessions
    co_await async::sleep_for(kLook);
  }
}

std::string Sessions::conversation_of(const mcp::Call& call, const std::string& key) const {
  // A process finds its own again that it put to rest; the next process begins afresh.
  return hash_of(is_process_default(call) ? key + "\n" + process_ : key);
}

// Called with the turn held.
awaitable<std::shared_ptr<Session>> Sessions::find_default(const mcp::Call& call,
                                                           const std::string& key,
                                                           bool fresh_instead) {
  const std::string& principal = call.peer().principal;
  auto known = defaults_.find(key);
  if (known != defaults_.end())
    if (auto session = find(principal, known->second)) co_return session;
  std::string conversation = conversation_of(call, key);
  Look look = [this, &principal, &conversation] {
    return store_.open_conversation(principal, conversation);
  };
  Opened stored = co_await open_stored(std::move(look));
  if (stored.session) co_return stored.session;
  if (stored.held == Held::elsewhere && !fresh_instead) co_return nullptr;
  if (stored.held == Held::elsewhere) conversation.clear();
  auto session = co_await make_default(call, conversation, fresh_instead);
  if (session && stored.held == Held::elsewhere)
    session->announce(
        "The session of this conversation is in use by another pykeep process, so this is a fresh "
        "one.");
  co_return session;
}

awaitable<std::shared_ptr<Session>> Sessions::make_default(const mcp::Call& call,
                                                           const std::string& conversation,
                                                           bool fresh_instead) {
  const std::string& principal = call.peer().principal;
  Wish wish;
  wish.conversation = conversation;
  if (policy_.default_name.empty() || !is_process_default(call))
    co_return co_await make(principal, wish);

  Opened named = co_await open(principal, policy_.default_name);
  if (named.session) co_return named.session;
  if (named.held == Held::elsewhere && !fresh_instead) co_return nullptr;
  if (named.held == Held::absent) wish.name = policy_.default_name;
  auto session = co_await make(principal, wish);
  if (named.held == Held::elsewhere)
    session->announce("Session \"" + policy_.default_name +
                      "\" is in use by another pykeep process, so this is a fresh one.");
  co_return session;
}

}  // namespace tools
