#include "sandbox/execution.hpp"

namespace sandbox {

namespace {

namespace json = boost::json;

constexpr std::uint64_t kMemberCost = 64;

std::uint64_t cost(const json::object& members);

std::uint64_t cost(const json::value& value) {
  std::uint64_t sum = sizeof(json::value);
  if (const auto* text = value.if_string()) sum += text->size();
  if (const auto* items = value.if_array())
    for (const auto& item : *items) sum += cost(item);
  if (const auto* members = value.if_object()) sum += cost(*members);
  return sum;
}

std::uint64_t cost(const json::object& members) {
  std::uint64_t sum = 0;
  for (const auto& member : members)
    sum += member.key().size() + kMemberCost + cost(member.value());
  return sum;
}

std::uint64_t text_cost(const PythonError& error) {
  std::uint64_t sum = error.name.size() + error.value.size();
  for (const std::string& line : error.traceback) sum += sizeof(std::string) + line.size();
  return sum;
}

}  // namespace

std::uint64_t held_bytes(const Display& display) {
  std::uint64_t sum = sizeof(Output) + cost(display.data) + cost(display.metadata);
  for (const auto& binary : display.binary)
    sum += sizeof binary + binary.mime.size() + binary.bytes.size();
  return sum + display.display_id.size();
}

std::uint64_t held_bytes(const Output& output) {
  if (const auto* display = std::get_if<Display>(&output.what)) return held_bytes(*display);
  std::uint64_t sum = sizeof output;
  if (const auto* text = std::get_if<Text>(&output.what)) sum += text->bytes.size();
  if (const auto* error = std::get_if<PythonError>(&output.what)) sum += text_cost(*error);
  return sum;
}

Execution::Execution(boost::asio::any_io_executor executor, std::string id, std::string code)
    : id(std::move(id)),
      code(std::move(code)),
      asked(std::chrono::steady_clock::now()),
      changed(executor),
      stop_changed(executor) {}

void Execution::request_stop(Stop why) {
  if (finished() || stop_ != Stop::none || why == Stop::none) return;
  stop_ = why;
  stop_changed.notify();
}

}  // namespace sandbox
