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
  std::string tool;       // the one that is called, for the log
  bool answered = false;  // nothing may be sent for it any more

  Revision revision() const { return envelope.revision; }
  Era era() const { return era_of(envelope.revision); }
  // Whether something may still be sent on behalf of this request.
  bool live() const { return !answered && !running->cancelled; }
};

// What the tool behind a request sees of it. `logger` names us in log messages. Both outlive it.
class RequestCall final : public Call {
 public:
  RequestCall(Request& request, const std::string& logger) : request_(request), logger_(logger) {}

  const Peer& peer() const override { return request_.peer; }
  Revision revision() const override { return request_.revision(); }
  const boost::json::object& meta() const override { return request_.envelope.meta; }

  bool wants_progress() const override { return !request_.envelope.progress_token.is_null(); }
  void progress(double progress, std::string message) override;
  void log(LogLevel level, std::string text) override;

  bool can_ask() const override;
  awaitable<Answer> ask(ElicitParams question, std::string state,
                        std::chrono::milliseconds limit) override;
  const std::optional<Resumed>& resumed() const override { return resumed_; }

  void resume(Resumed resumed) { resumed_ = std::move(resumed); }

 private:
  std::optional<LogLevel> threshold() const;
  awaitable<Answer> ask_now(ElicitParams question, std::chrono::milliseconds limit);

  Request& request_;
  const std::string& logger_;
  std::optional<double> last_progress_;
  std::optional<Resumed> resumed_;
};

// The answer that an ElicitResult holds. Throws DecodeError.
Answer decode_answer(const boost::json::value& elicit_result);

}  // namespace mcp
