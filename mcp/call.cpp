#include "mcp/call.hpp"

namespace mcp {

awaitable<Answer> Call::ask(ElicitParams question, std::string state,
                            std::chrono::milliseconds limit) {
  InputRequests requests;
  requests[kAnswerKey] = elicitation(question);
  std::optional<std::string> kept = std::move(state);
  InputResponses responses = co_await ask(std::move(requests), std::move(kept), limit);
  co_return answer_in(responses, kAnswerKey);
}

}  // namespace mcp
