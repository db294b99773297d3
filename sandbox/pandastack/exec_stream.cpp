#include "sandbox/pandastack/exec_stream.hpp"

#include <boost/json.hpp>

#include "schemas/parse.hpp"

namespace sandbox::pandastack {

namespace json = boost::json;

namespace {

Error failed(const std::string& purpose, Failure failure, const std::string& why) {
  return Error(failure, Outcome::unknown, purpose + ": " + why);
}

const json::value* member(const json::value& in, std::string_view key) {
  return in.is_object() ? in.get_object().if_contains(key) : nullptr;
}

}  // namespace

ExecStream::ExecStream(std::unique_ptr<Answer> answer, std::string purpose)
    : answer_(std::move(answer)), purpose_(std::move(purpose)) {}

ExecStream::~ExecStream() = default;

int ExecStream::exit_code() const { return exit_code_.value(); }

std::optional<ExecOutput> ExecStream::output(const ServerEvents::Event& event) {
  boost::system::error_code malformed;
  json::value data = schemas::parse(event.data, malformed);
  if (event.name == "error") {
    Error error = failed(purpose_, Failure::answered, message_of(event.data));
    error.message = message_of(event.data);
    if (is_warm_up(error.message)) error.outcome = Outcome::refused;
    throw error;
  }
  if (event.name == "exit") {
    const json::value* code = member(data, "exit_code");
    if (!code || !code->is_int64())
      throw failed(purpose_, Failure::malformed, "its end has no exit code");
    exit_code_ = static_cast<int>(code->get_int64());
  }
  if (event.name != "stdout" && event.name != "stderr") return std::nullopt;
  const json::value* chunk = member(data, "chunk");
  if (!chunk || !chunk->is_string())
    throw failed(purpose_, Failure::malformed, "its output cannot be read");
  return ExecOutput{event.name == "stderr", std::string(chunk->get_string())};
}

awaitable<std::optional<ExecOutput>> ExecStream::next() {
  while (!exit_code_) {
    if (auto event = events_.next()) {
      auto found = output(*event);
      if (found) co_return std::move(found);
      continue;
    }
    if (events_.is_too_long())
      throw failed(purpose_, Failure::malformed, "an event of the stream is too long");
    auto bytes = co_await answer_->read();
    if (!bytes) throw failed(purpose_, Failure::cut, "the stream ended before the command did");
    events_.feed(*bytes);
  }
  co_return std::nullopt;
}

}  // namespace sandbox::pandastack
