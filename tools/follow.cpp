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

  milliseconds until_next() const {
    auto due = last_ + kProgressAtLeast - steady_clock::now();
    return std::max(std::chrono::duration_cast<milliseconds>(due), milliseconds(1));
  }

  void tell() {
    auto now = steady_clock::now();
    bool news = execution_.bytes_out != told_bytes_ && now - last_ >= kProgressAtMost;
    if (!call_.wants_progress() || (!news && now - last_ < kProgressAtLeast)) return;
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
  std::string prompt = plain_text(input.prompt).substr(0, 2000);
  prompt = valid_utf8(prompt);
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

awaitable<void> ask(mcp::Call& call, Session& session, Execution& execution) {
  // Form questions must not be used for secrets (MCP, elicitation: security considerations).
  std::optional<std::string> value;
  if (!execution.input->password && call.can_ask()) {
    mcp::ElicitParams params = question(*execution.input);
    auto limit = execution.timeout;
    auto answer = co_await call.ask(std::move(params), execution.id, limit);
    value = value_of(answer);
  }
  if (execution.status == Status::waiting_input)
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
  if (call.resumed() && call.resumed()->state == execution.id &&
      execution.status == Status::waiting_input) {
    auto value = value_of(call.resumed()->answer);
    co_await session.answer(execution, std::move(value));
  }
  Progress progress(call, execution);
  while (!execution.finished() && steady_clock::now() < deadline) {
    if (execution.status == Status::waiting_input) {
      co_await ask(call, session, execution);
      continue;
    }
    auto left = std::chrono::duration_cast<milliseconds>(deadline - steady_clock::now());
    auto limit = std::min(left + milliseconds(1), progress.until_next());
    co_await execution.changed.wait(limit);
    progress.tell();
  }
}

}  // namespace tools
