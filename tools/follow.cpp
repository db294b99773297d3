#include "tools/follow.hpp"

#include <algorithm>
#include <cmath>

#include "mcp/error.hpp"
#include "tools/text.hpp"

namespace tools {

namespace json = boost::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Status = Execution::Status;

namespace {

constexpr std::chrono::seconds kProgressAtLeast{10};
constexpr std::chrono::seconds kProgressAtMost{1};
constexpr std::size_t kProgressText = 200;
constexpr std::size_t kPromptText = 2000;

// The last line the cell has printed, for whoever watches.
std::string last_line(const Execution& execution) {
  if (execution.outputs.empty()) return {};
  const auto* text = std::get_if<sandbox::Text>(&execution.outputs.back().what);
  if (!text) return {};
  std::string_view bytes(text->bytes);
  if (bytes.size() > 4 * kProgressText) bytes.remove_prefix(bytes.size() - 4 * kProgressText);
  std::string line = plain_text(bytes);
  while (line.ends_with('\n')) line.pop_back();
  line.erase(0, line.rfind('\n') + 1);
  return std::string(last_characters(line, kProgressText));
}

class Progress {
 public:
  Progress(mcp::Call& call, const Execution& execution) : call_(call), execution_(execution) {}

  // When tell() will have something to say, as far as is known now.
  steady_clock::time_point due() const {
    if (!call_.wants_progress()) return steady_clock::time_point::max();
    bool news = execution_.bytes_out != told_bytes_;
    return last_ + (news ? kProgressAtMost : kProgressAtLeast);
  }

  void tell() {
    auto now = steady_clock::now();
    if (now < due()) return;
    last_ = now;
    told_bytes_ = execution_.bytes_out;
    double elapsed = std::chrono::duration<double>(now - execution_.asked).count();
    std::string message = execution_.status == Status::queued ? "queued" : "running";
    message += ", " + std::to_string(static_cast<int>(elapsed)) + " s";
    std::string line = last_line(execution_);
    call_.progress(elapsed, line.empty() ? message : message + ": " + line);
  }

 private:
  mcp::Call& call_;
  const Execution& execution_;
  steady_clock::time_point last_ = steady_clock::now();
  std::uint64_t told_bytes_ = 0;
};

mcp::ElicitParams question(const sandbox::InputRequest& input) {
  std::string prompt = plain_text(input.prompt);
  prompt.resize(first_characters(prompt, kPromptText).size());
  json::object property;
  property["type"] = "string";
  property["title"] = "Input";
  json::object properties;
  properties["value"] = std::move(property);
  json::array required;
  required.emplace_back("value");
  mcp::ElicitParams params;
  params.message = "The Python code asks for input: " + (prompt.empty() ? "(no prompt)" : prompt);
  params.requestedSchema["type"] = "object";
  params.requestedSchema["properties"] = std::move(properties);
  params.requestedSchema["required"] = std::move(required);
  return params;
}

std::optional<std::string> value_of(const mcp::Answer& answer) {
  const json::value* value = answer.content.if_contains("value");
  if (answer.action != mcp::Answer::Action::accept || !value || !value->is_string())
    return std::nullopt;
  return std::string(value->get_string());
}

// Returns when the execution's status is another one, or the deadline has passed.
awaitable<void> while_it_is(Status status, Execution& execution, Progress& progress,
                            steady_clock::time_point deadline) {
  while (execution.status == status) {
    auto now = steady_clock::now();
    if (now >= deadline) co_return;
    auto left = std::chrono::ceil<milliseconds>(std::min(deadline, progress.due()) - now);
    co_await execution.changed.wait(std::max(left, milliseconds(1)));
    progress.tell();
  }
}

awaitable<void> ask(mcp::Call& call, Session& session, Execution& execution, Progress& progress,
                    steady_clock::time_point deadline) {
  // Form questions must not be used for secrets (MCP, elicitation: security considerations).
  std::optional<std::string> value;
  if (!execution.input->password && call.can_ask()) {
    mcp::ElicitParams params = question(*execution.input);
    auto moot = while_it_is(Status::waiting_input, execution, progress, deadline);
    auto asking = call.ask(std::move(params), execution.id, execution.timeout);
    auto answer = co_await async::unless(std::move(moot), std::move(asking));
    if (!answer) co_return;
    value = value_of(*answer);
  }
  co_await session.answer(execution, std::move(value));
}

}  // namespace

milliseconds checked_seconds(const char* argument, std::optional<double> seconds, double by_default,
                             double least, double most) {
  double value = seconds.value_or(by_default);
  if (!std::isfinite(value) || value < least || value > most)
    throw mcp::ToolError("arguments." + std::string(argument) + ": expected seconds from " +
                         std::to_string(static_cast<int>(least)) + " to " +
                         std::to_string(static_cast<int>(most)) + ". Nothing was run.");
  return milliseconds(static_cast<std::int64_t>(value * 1000));
}

awaitable<void> follow(mcp::Call& call, Session& session, Execution& execution, milliseconds wait) {
  auto deadline = steady_clock::now() + wait;
  if (call.resumed() && call.resumed()->state == execution.id) {
    auto value = value_of(call.resumed()->answer);
    co_await session.answer(execution, std::move(value));
  }
  Progress progress(call, execution);
  while (!execution.finished() && steady_clock::now() < deadline) {
    Status status = execution.status;
    if (status == Status::waiting_input) co_await ask(call, session, execution, progress, deadline);
    // Also when the answer was not taken: whatever happens, every round waits.
    if (execution.status == status) co_await while_it_is(status, execution, progress, deadline);
  }
}

awaitable<void> await_end(mcp::Call& call, Execution& execution, milliseconds wait) {
  auto deadline = steady_clock::now() + wait;
  Progress progress(call, execution);
  while (!execution.finished() && steady_clock::now() < deadline)
    co_await while_it_is(execution.status, execution, progress, deadline);
}

}  // namespace tools
