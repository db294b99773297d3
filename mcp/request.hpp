#pragma once

#include <boost/json.hpp>
#include <memory>
#include <string>

#include "mcp/call.hpp"
#include "mcp/envelope.hpp"
#include "mcp/peer.hpp"

namespace mcp {

// One request while it is served.
struct Request {
  boost::json::value id;
  std::string method;
  boost::json::value params;  // null if absent
  Peer& peer;
  Outbox& out;
  std::shared_ptr<Peer::InFlight> running;
  Envelope envelope;
  std::string origin;     // what the transport calls it, for the log
  std::string subject;    // the tool or prompt it is about, for the log
  bool answered = false;  // nothing may be sent for it any more
  // Modern: the answers that came with it, to questions that left a state here, or to any others.
  std::optional<Resumed> resumed;
  boost::json::object responses;

  Revision revision() const { return envelope.revision; }
  Era era() const { return era_of(envelope.revision); }
  // Whether something may still be sent on behalf of this request.
  bool live() const { return !answered && !running->cancelled; }
};

// What the handler behind a request sees of it. `logger` names us in log messages. Both outlive it.
class RequestCall final : public Call {
 public:
  RequestCall(Request& request, const std::string& logger) : request_(request), logger_(logger) {}

  const Peer& peer() const override { return request_.peer; }
  Revision revision() const override { return request_.revision(); }
  const boost::json::object& meta() const override { return request_.envelope.meta; }
  const std::string& origin() const override { return request_.origin; }

  bool wants_progress() const override { return !request_.envelope.progress_token.is_null(); }
  void progress(double progress, std::optional<double> total, std::string message) override;
  void log(LogLevel level, std::string text) override;

  bool serves(std::string_view method) const override;
  awaitable<InputResponses> ask(InputRequests requests, std::optional<std::string> state,
                                std::chrono::milliseconds limit) override;
  const std::optional<Resumed>& resumed() const override { return request_.resumed; }
  void hang_up() override { request_.out.hang_up(); }

 private:
  std::optional<LogLevel> threshold() const;
  void expect_served(const InputRequests& requests) const;
  awaitable<std::optional<boost::json::object>> ask_now(InputRequest request,
                                                        std::chrono::milliseconds limit);

  Request& request_;
  const std::string& logger_;
  std::optional<double> last_progress_;
};

}  // namespace mcp
