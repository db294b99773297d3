// From a message to its answer: batches, ids in flight, cancellation, and the one place where a
// failure becomes an error. The methods themselves are in the files server_*.cpp.

#include "mcp/server.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/experimental/parallel_group.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "mcp/envelope.hpp"
#include "mcp/method.hpp"
#include "mcp/reply.hpp"
#include "mcp/request.hpp"
#include "mcp/shape.hpp"
#include "schemas/codec.hpp"

namespace mcp {

namespace asio = boost::asio;
namespace json = boost::json;

namespace {

constexpr std::size_t kMaxBatch = 100;       // as the SDKs have it
constexpr std::size_t kMaxInFlight = 1024;   // a client that never waits for an answer
constexpr std::size_t kLongestUri = 16'384;  // three bytes for each of the longest path

// Holds an id in flight.
class Running {
 public:
  Running(Peer& peer, std::string key)
      : peer_(peer), key_(std::move(key)), call_(std::make_shared<Peer::InFlight>()) {
    peer_.in_flight[key_] = call_;
  }
  ~Running() { peer_.in_flight.erase(key_); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  const std::shared_ptr<Peer::InFlight>& call() const { return call_; }

 private:
  Peer& peer_;
  std::string key_;
  std::shared_ptr<Peer::InFlight> call_;
};

bool cancelled(const asio::cancellation_state& state) {
  return state.cancelled() != asio::cancellation_type::none;
}

// Ignores what it cannot make sense of, and a call that has already ended: the two may cross.
void cancel(Peer& peer, const json::object& message) {
  const json::value* params = message.if_contains("params");
  const json::object* fields = params ? params->if_object() : nullptr;
  const json::value* id = fields ? fields->if_contains("requestId") : nullptr;
  if (!id || !is_id(*id)) return;
  auto found = peer.in_flight.find(key_of(*id));
  if (found == peer.in_flight.end() || !found->second->cancellable) return;
  std::shared_ptr<Peer::InFlight> call = found->second;
  call->cancelled = true;
  call->signal.emit(asio::cancellation_type::terminal);
}

// Hands the client's response to the request of ours that waits for it, if any still does.
void settle(Peer& peer, json::object message) {
  const std::int64_t* id = message.at("id").if_int64();
  auto found = id ? peer.asked.find(*id) : peer.asked.end();
  if (found == peer.asked.end() || found->second->response) return;
  found->second->response = std::move(message);
  found->second->changed.notify();
}

// A member of `message`, moved out of it; null if absent.
json::value taken(json::object& message, std::string_view key) {
  json::value* found = message.if_contains(key);
  return found ? std::move(*found) : json::value();
}

json::object failed(const Request& request, const ResourceNotFound& failure) {
  bool modern = request.era() == Era::modern;  // SEP-2164
  std::string uri = schemas::clipped(failure.uri, kLongestUri);
  json::object data;
  data["uri"] = uri;
  return error_reply(request.id,
                     modern ? ErrorCode::invalid_params : ErrorCode::legacy_resource_not_found,
                     "Resource not found: " + uri, std::move(data));
}

// A defect of ours, or a world that fails us: the log gets the cause, the client that it happened.
json::object failed(const Request& request, const char* what) {
  spdlog::error("{} {}: {}", request.method, request.subject, what);
  std::string subject = request.subject.empty() ? request.method : request.subject;
  return error_reply(request.id, ErrorCode::internal_error,
                     subject + " failed inside the server; its log says why");
}

}  // namespace

Server::Server(Implementation self, std::string instructions, Offer offer)
    : self_(std::move(self)), instructions_(std::move(instructions)), offer_(std::move(offer)) {
  for (const Tool& tool : offer_.tools) {
    std::vector<Mirror> mirrors = mirrors_in(tool.info.inputSchema);
    if (!mirrors.empty()) mirrors_[tool.info.name] = std::move(mirrors);
  }
}

Server::Server(Implementation self, std::string instructions, std::vector<Tool> tools,
               Resources* resources)
    : Server(std::move(self), std::move(instructions), Offer{std::move(tools), {}, resources}) {}

json::object Server::refusal(ErrorCode code, std::string_view text) {
  return error_reply(nullptr, code, text);
}

awaitable<void> Server::handle(json::value message, Peer& peer, Outbox& out, std::string origin) {
  auto state = co_await asio::this_coro::cancellation_state;
  try {
    json::value reply = co_await answer(std::move(message), peer, out, std::move(origin));
    if (!reply.is_null() && !cancelled(state)) co_await out.send(std::move(reply));
  } catch (const std::exception& failure) {
    if (!cancelled(state)) spdlog::error("a message could not be answered: {}", failure.what());
  }
}

awaitable<json::value> Server::answer(json::value message, Peer& peer, Outbox& out,
                                      std::string origin) {
  if (json::array* batch = message.if_array()) {
    auto answering = answer_batch(std::move(*batch), peer, out, std::move(origin));
    json::value replies = co_await std::move(answering);
    co_return replies;
  }
  json::object* object = message.if_object();
  if (!object) co_return refusal(ErrorCode::invalid_request, "A message is a JSON object");
  switch (kind_of(*object)) {
    case Kind::request: {
      auto answering = answer_request(std::move(*object), peer, out, std::move(origin));
      json::value reply = co_await std::move(answering);
      co_return reply;
    }
    case Kind::notification:
      if (object->at("method") == "notifications/cancelled") cancel(peer, *object);
      co_return json::value();
    case Kind::response:
      settle(peer, std::move(*object));
      co_return json::value();
    case Kind::invalid:
      break;
  }
  co_return error_reply(
      readable_id(*object), ErrorCode::invalid_request,
      "Not a JSON-RPC 2.0 message: needs jsonrpc \"2.0\", a method, and an id that "
      "is a string or a 64-bit integer");
}

// Only 2025-03-26 has batches. Their elements run concurrently and are answered together.
awaitable<json::value> Server::answer_batch(json::array messages, Peer& peer, Outbox& out,
                                            std::string origin) {
  bool spoken = peer.legacy && peer.legacy->revision == Revision::v2025_03_26;
  for (const json::value& message : messages)
    spoken = spoken && !(message.is_object() && claims_modern(message.get_object()));
  if (!spoken) co_return refusal(ErrorCode::invalid_request, "Batches are for 2025-03-26 only");
  if (messages.empty()) co_return refusal(ErrorCode::invalid_request, "The batch is empty");
  if (messages.size() > kMaxBatch)
    co_return refusal(ErrorCode::invalid_request,
                      "The batch has more than " + std::to_string(kMaxBatch) + " messages");

  auto executor = co_await asio::this_coro::executor;
  json::array replies;
  using Work =
      decltype(asio::co_spawn(executor, answer(json::value(), peer, out, origin), asio::deferred));
  std::vector<Work> running;
  for (json::value& message : messages) {
    json::object* object = message.if_object();
    json::value* method = object ? object->if_contains("method") : nullptr;
    if (method && *method == "initialize") {
      replies.push_back(error_reply(readable_id(*object), ErrorCode::invalid_request,
                                    "initialize cannot be part of a batch"));
      continue;
    }
    if (message.is_array()) message = nullptr;  // a batch in a batch is no message
    auto work = answer(std::move(message), peer, out, origin);
    running.push_back(asio::co_spawn(executor, std::move(work), asio::deferred));
  }
  if (!running.empty()) {
    auto all = asio::experimental::make_parallel_group(std::move(running));
    auto [order, failures, answers] =
        co_await all.async_wait(asio::experimental::wait_for_all(), asio::use_awaitable);
    for (json::value& reply : answers)
      if (!reply.is_null()) replies.push_back(std::move(reply));
  }
  if (replies.empty()) co_return json::value();
  co_return replies;
}

awaitable<json::value> Server::answer_request(json::object message, Peer& peer, Outbox& out,
                                              std::string origin) {
  json::value id = taken(message, "id");
  std::string key = key_of(id);
  if (peer.in_flight.contains(key))
    co_return error_reply(id, ErrorCode::invalid_request, "A request with this id is in flight");
  if (peer.in_flight.size() >= kMaxInFlight)
    co_return error_reply(id, ErrorCode::internal_error, "Too many requests in flight");

  Running running(peer, std::move(key));
  std::shared_ptr<Peer::InFlight> call = running.call();
  std::string method(message.at("method").get_string());
  call->cancellable = method != "initialize";
  Request request{std::move(id), std::move(method), taken(message, "params"), peer, out, call};
  request.origin = std::move(origin);

  // The request has a signal of its own, which takes the place of this coroutine's for the time: so
  // the latter, which speaks when the transport gives up, is passed on to it.
  auto executor = co_await asio::this_coro::executor;
  auto state = co_await asio::this_coro::cancellation_state;
  asio::cancellation_slot outer = state.slot();
  if (outer.is_connected()) {
    outer.assign([call](asio::cancellation_type type) {
      auto alive = call;  // this lambda may be gone before emit returns
      alive->signal.emit(type);
    });
  }
  auto work = serve(std::move(request));
  auto token = asio::bind_cancellation_slot(call->signal.slot(), asio::use_awaitable);
  json::value reply = co_await asio::co_spawn(executor, std::move(work), token);
  if (outer.is_connected()) outer.clear();
  if (call->cancelled || cancelled(state)) reply = nullptr;  // a cancelled call is not answered
  co_return reply;
}

// The one place where a failed request becomes a JSON-RPC error.
awaitable<json::value> Server::serve(Request request) {
  auto state = co_await asio::this_coro::cancellation_state;
  json::value reply;
  try {
    request.envelope = read_envelope(request.params, request.peer);
    if (request.params.is_null()) request.params.emplace_object();
    const Method& method = method_for(request);
    std::optional<json::object> unanswered;
    if (method.asks && request.era() == Era::modern) unanswered = take_answers(request);
    Caching caching = unanswered ? Caching::none : method.caching;
    json::object result = std::move(unanswered).value_or(json::object());
    if (result.empty()) result = co_await method.run(*this, request);
    complete(result, request.revision(), caching, self_);
    reply = result_reply(request.id, std::move(result));
  } catch (const InputRequired& asked) {
    json::object result = input_required(request, asked);
    complete(result, request.revision(), Caching::none, self_);
    reply = result_reply(request.id, std::move(result));
  } catch (const Error& failure) {
    reply = error_reply(request.id, failure.code, failure.what(), failure.data);
  } catch (const ResourceNotFound& failure) {
    reply = failed(request, failure);
  } catch (const ToolError& failure) {  // of what is no tool
    reply = error_reply(request.id, ErrorCode::internal_error, failure.what());
  } catch (const std::exception& failure) {
    if (!cancelled(state)) reply = failed(request, failure.what());
  } catch (...) {
    if (!cancelled(state)) reply = failed(request, "unknown exception");
  }
  request.answered = true;
  co_return reply;
}

}  // namespace mcp
