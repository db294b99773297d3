#include "sandbox/pandastack/caller.hpp"

#include <spdlog/spdlog.h>
#include <sys/random.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "schemas/parse.hpp"

namespace sandbox::pandastack {

namespace json = boost::json;

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr std::size_t kMaxErrorBody = 64 << 10;
constexpr seconds kMostRetryAfter{30};

std::string new_request_id() {
  unsigned char bytes[8];
  if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes) throw std::runtime_error("getrandom");
  std::string id = "pykeep-";
  for (unsigned char byte : bytes) id += fmt::format("{:02x}", byte);
  return id;
}

std::string purpose_of(const Ask& ask, const std::string& id) {
  return "PandaStack could not " + ask.purpose + " (request " + id + ")";
}

std::optional<seconds> retry_after(const Head& head) {
  const std::string* value = head.find("retry-after");
  if (!value) return std::nullopt;
  unsigned number = 0;
  auto [end, bad] = std::from_chars(value->data(), value->data() + value->size(), number);
  if (bad != std::errc()) return seconds(1);  // a date: it is soon enough
  return std::min(seconds(number), kMostRetryAfter);
}

// What comes of the body of an error, which may break off like any other.
awaitable<std::string> error_body(Answer& answer) {
  std::string body;
  try {
    while (body.size() < kMaxErrorBody) {
      auto bytes = co_await answer.read();
      if (!bytes) break;
      body += *bytes;
    }
  } catch (const Error&) {
    // The status says enough.
  }
  body.resize(std::min(body.size(), kMaxErrorBody));
  co_return std::move(body);
}

std::string advice(int status, const Settings& settings, const Head& head) {
  switch (status) {
    case 401:
      return settings.key.empty() ? "Set PANDASTACK_API_KEY"
                                  : "Check the key, which is from " + settings.key_from;
    case 402:
    case 403:
      return "The account's plan or its rights do not cover it";
    case 429:
      return "Too many requests; try again in a moment";
    default:
      break;
  }
  const std::string* location = head.find("location");
  if (status < 400 && location)
    return "It redirects, and the key goes nowhere but to " + settings.base +
           ". Set PANDASTACK_API to the right address";
  return {};
}

// Which failures are followed by another attempt, and when.
class Repetition {
 public:
  Repetition(const Ask& ask, const Patience& patience, milliseconds warm_up)
      : ask_(ask),
        patience_(patience),
        warm_up_pause_(patience.warm_up_first),
        warm_up_end_(Clock::now() + warm_up) {}

  std::optional<milliseconds> pause_after(const Error& error) {
    if (error.failure != Failure::answered) return std::nullopt;
    if (error.status == 404 && ask_.not_found_again && !is_of_guest(error.message))
      return counted(not_found_, 1, patience_.not_found);
    if (error.status == 429)
      return counted(rate_limited_, patience_.rate_limited, asked_for(error));
    if (ask_.takes_room && error.outcome == Outcome::refused && error.status >= 502)
      return counted(no_room_, patience_.no_capacity, asked_for(error) * (no_room_ + 1));
    if (ask_.reaches_guest && is_warm_up(error.message)) return warm_up();
    return std::nullopt;
  }

 private:
  using Clock = std::chrono::steady_clock;

  // A file that the guest does not have will not be there in a moment.
  static bool is_of_guest(const std::string& message) {
    return message.find("file does not exist") != message.npos ||
           message.find("No such file") != message.npos;
  }
  static std::optional<milliseconds> counted(int& used, int most, milliseconds pause) {
    if (used >= most) return std::nullopt;
    ++used;
    return pause;
  }
  milliseconds asked_for(const Error& error) const {
    return patience_.unit * error.retry_after.value_or(seconds(1)).count();
  }
  std::optional<milliseconds> warm_up() {
    milliseconds pause = warm_up_pause_;
    warm_up_pause_ = std::min(pause * 3 / 2, patience_.warm_up_most);
    if (Clock::now() + pause > warm_up_end_) return std::nullopt;
    return pause;
  }

  const Ask& ask_;
  const Patience& patience_;
  milliseconds warm_up_pause_;
  Clock::time_point warm_up_end_;
  int not_found_ = 0, rate_limited_ = 0, no_room_ = 0;
};

}  // namespace

Caller::Caller(boost::asio::any_io_executor executor, Settings settings, HttpOptions http,
               Patience patience)
    : settings_(std::move(settings)),
      patience_(patience),
      http_(std::move(executor), std::move(http)) {
  if (settings_.in_plain_text() && !settings_.key.empty())
    spdlog::warn("pandastack: the key goes to {} in plain text; use https", settings_.base);
}

awaitable<std::unique_ptr<Answer>> Caller::open(const Ask& ask) {
  Repetition repetition(ask, patience_, settings_.warm_up);
  for (;;) {
    milliseconds pause{0};
    try {
      co_return co_await attempt(ask);
    } catch (const Error& error) {
      auto wished = repetition.pause_after(error);
      if (!wished) throw;
      pause = *wished;
      spdlog::debug("{}; again in {} ms", error.what(), pause.count());
    }
    co_await async::sleep_for(pause);
  }
}

awaitable<json::value> Caller::json(const Ask& ask) {
  auto answer = co_await open(ask);
  std::string body;
  while (auto bytes = co_await answer->read()) body += *bytes;
  if (body.find_first_not_of(" \t\r\n") == body.npos) co_return json::value();
  boost::system::error_code malformed;
  json::value out = schemas::parse(without_key(std::move(body)), malformed);
  if (malformed) throw not_understood(ask, "the answer is not JSON");
  co_return std::move(out);
}

Error Caller::not_understood(const Ask& ask, const std::string& why) const {
  std::string what = "PandaStack could not " + ask.purpose + ": " + why +
                     ". It may have been done all the same; is " + settings_.base +
                     " a PandaStack API?";
  return Error(Failure::malformed, Outcome::unknown, what);
}

awaitable<std::unique_ptr<Answer>> Caller::attempt(const Ask& ask) {
  auto began = std::chrono::steady_clock::now();
  std::string id = new_request_id();
  auto log = [&](const std::string& result) {
    auto took = std::chrono::steady_clock::now() - began;
    spdlog::debug("pandastack: {} {}: {} in {} ms (request {})", ask.method, ask.path, result,
                  std::chrono::duration_cast<milliseconds>(took).count(), id);
  };
  Request asked = request(ask, id);
  std::unique_ptr<Answer> answer;
  try {
    answer = co_await http_.open(std::move(asked));
  } catch (Error& error) {
    error.request_id = id;
    log("no answer");
    throw;
  }
  log(std::to_string(answer->head().status));
  if (answer->head().status < 300) co_return std::move(answer);
  std::string body = co_await error_body(*answer);
  throw failure(ask, answer->head(), std::move(body), id);
}

Request Caller::request(const Ask& ask, const std::string& id) const {
  Request out;
  out.purpose = purpose_of(ask, id);
  out.method = ask.method;
  out.url = settings_.base + ask.path + (ask.query.empty() ? "" : "?" + ask.query);
  out.headers = ask.headers;
  if (!settings_.key.empty()) out.headers.emplace_back("Authorization", "Bearer " + settings_.key);
  out.headers.emplace_back("X-Request-Id", id);
  out.body = ask.body;
  out.limit = ask.limit;
  out.silence = ask.silence;
  out.cap = ask.cap;
  return out;
}

Error Caller::failure(const Ask& ask, const Head& head, std::string body,
                      const std::string& id) const {
  body = without_key(std::move(body));
  std::string message = message_of(body);
  auto after = retry_after(head);
  Outcome outcome = outcome_of(head.status, message, after.has_value());
  std::string what = purpose_of(ask, id) + ": HTTP " + std::to_string(head.status);
  if (!message.empty()) what += ", " + message;
  if (std::string help = advice(head.status, settings_, head); !help.empty()) what += ". " + help;
  if (outcome == Outcome::unknown) what += ". It may have been done all the same";
  Error error(Failure::answered, outcome, what);
  error.status = head.status;
  error.message = std::move(message);
  error.body = std::move(body);
  error.retry_after = after;
  error.request_id = id;
  return error;
}

// A server, or a proxy before it, may show the request in its answer.
std::string Caller::without_key(std::string text) const {
  const std::string& key = settings_.key;
  if (key.empty()) return text;
  for (std::size_t at = text.find(key); at != text.npos; at = text.find(key, at))
    text.replace(at, key.size(), "***");
  return text;
}

}  // namespace sandbox::pandastack
