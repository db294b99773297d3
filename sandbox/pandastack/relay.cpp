#include "sandbox/pandastack/relay.hpp"

#include "sandbox/bounded_text.hpp"
#include "sandbox/pandastack/errors.hpp"
#include "schemas/codec.hpp"

namespace sandbox::pandastack {

namespace json = boost::json;

namespace {

constexpr std::size_t kWords = 500;  // of the guest, in a sentence of ours

std::string text_of(const json::object& in, const char* name) {
  const json::value* value = in.if_contains(name);
  return value && value->is_string() ? std::string(value->get_string()) : std::string();
}

// One that can be counted on from: the guest chooses it.
std::optional<std::int64_t> number_of(const json::object& in, const char* name) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  const json::value* value = in.if_contains(name);
  if (!value || !value->is_int64()) return std::nullopt;
  const std::int64_t number = value->get_int64();
  if (number < -kMost || number > kMost) return std::nullopt;
  return number;
}

bool is_true(const json::object& in, const char* name) {
  const json::value* value = in.if_contains(name);
  return value && value->is_bool() && value->get_bool();
}

std::optional<json::object> object_of(std::string_view text) {
  boost::system::error_code malformed;
  json::value value = json::parse(text, malformed);
  if (malformed || !value.is_object()) return std::nullopt;
  return std::move(value.get_object());
}

std::optional<int> small(const json::object& in, const char* name) {
  auto number = number_of(in, name);
  if (!number || *number < 0 || *number > 255) return std::nullopt;
  return static_cast<int>(*number);
}

}  // namespace

std::optional<RelayState> read_state(const json::value& in) {
  if (!in.is_object()) return std::nullopt;
  const json::object& from = in.get_object();
  RelayState state;
  state.epoch = text_of(from, "epoch");
  bool is_word = !state.epoch.empty() && state.epoch.size() <= 64;
  for (unsigned char c : state.epoch) is_word = is_word && (std::isalnum(c) || c == '-');
  auto port = number_of(from, "port");
  if (!is_word || !port || *port < 1 || *port > 65535) return std::nullopt;
  state.port = static_cast<int>(*port);
  const json::value* kernel = from.if_contains("kernel");
  if (kernel && kernel->is_object()) {
    const json::value* exit = kernel->get_object().if_contains("exit");
    state.ended = exit && !exit->is_null();
    state.connected = is_true(kernel->get_object(), "connected");
  }
  state.sent = number_of(from, "sent");
  state.busy = is_true(from, "busy");
  state.last = number_of(from, "last").value_or(0);
  if (state.last < 0 || (state.sent && *state.sent < 0)) return std::nullopt;
  return state;
}

Started read_started(std::string_view output) {
  Started started;
  // A login shell may greet before, and python warn after.
  for (std::size_t at = 0; at < output.size();) {
    std::size_t end = std::min(output.find('\n', at), output.size());
    auto line = object_of(output.substr(at, end - at));
    at = end + 1;
    if (!line || !line->contains("ok")) continue;
    if (is_true(*line, "ok")) started.state = read_state(*line);
    started.problem = text_of(*line, "problem");
    started.message = readable_end(text_of(*line, "message"), kWords);
    started.remedy = text_of(*line, "remedy");
  }
  if (!started.state && started.problem.empty()) {
    started.problem = "failed";
    started.message = readable_end(std::string(output), kWords);
  }
  return started;
}

std::optional<Refusal> read_refusal(int status, std::string_view body) {
  auto answer = object_of(body);
  if (!answer || !answer->contains("reason")) return std::nullopt;
  Refusal refusal(status, text_of(*answer, "reason"),
                  "the relay refuses: " + readable_end(text_of(*answer, "error"), kWords));
  if (const json::value* state = answer->if_contains("state")) refusal.state = read_state(*state);
  return refusal;
}

Record read_record(Frame raw) {
  Record record;
  std::string is = text_of(raw.header, "is");
  auto seq = number_of(raw.header, "seq");
  if (!seq || *seq < 0) throw schemas::DecodeError("a record without a number");
  record.seq = *seq;
  if (is == "stdout" || is == "stderr") {
    record.is = Record::Is::text;
    record.is_stderr = is == "stderr";
    record.frame.payload = std::move(raw.payload);
  } else if (is == "frame") {
    record.is = Record::Is::frame;
    json::value* header = raw.header.if_contains("header");
    if (!header || !header->is_object()) throw schemas::DecodeError("a frame without a header");
    record.frame.header = std::move(header->get_object());
    record.frame.payload = std::move(raw.payload);
  } else if (is == "sent") {
    record.is = Record::Is::sent;
  } else if (is == "dropped") {
    record.is = Record::Is::dropped;
    record.count = static_cast<std::uint64_t>(
        std::max<std::int64_t>(number_of(raw.header, "bytes").value_or(0), 0));
  } else if (is == "exit") {
    record.is = Record::Is::exit;
    record.code = small(raw.header, "code");
    record.signal = small(raw.header, "signal");
    record.count = static_cast<std::uint64_t>(
        std::max<std::int64_t>(number_of(raw.header, "oom_kills").value_or(0), 0));
  } else if (is == "violation") {
    record.is = Record::Is::violation;
    record.why = readable_end(text_of(raw.header, "what"), kWords);
  } else if (is == "end") {
    record.is = Record::Is::end;
    record.why = text_of(raw.header, "why");
  } else if (is != "alive") {
    throw schemas::DecodeError("a record of an unknown kind");
  }
  return record;
}

awaitable<std::string> read_all(RelayAnswer& answer, std::size_t cap) {
  std::string all;
  while (auto piece = co_await answer.read()) {
    all += *piece;
    if (all.size() > cap)
      throw Error(Failure::too_large, Outcome::unknown, "the relay's answer is too long");
  }
  co_return all;
}

awaitable<RelayState> ask_state(Carrier& carrier, std::chrono::milliseconds limit) {
  constexpr std::size_t kCap = 64 << 10;
  auto answer = co_await carrier.ask("GET", "/state", "", limit);
  std::string body = co_await read_all(*answer, kCap);
  auto parsed = object_of(body);
  std::optional<RelayState> state;
  if (parsed) state = read_state(*parsed);
  if (!state)
    throw Error(Failure::malformed, Outcome::unknown,
                "the relay's state is not one: " + readable_end(body, kWords));
  co_return std::move(*state);
}

}  // namespace sandbox::pandastack
