#include <charconv>

#include "sandbox/pandastack/carriers.hpp"
#include "schemas/base64.hpp"

// Requests to the relay as commands in the guest: `call` of docs/guest-relay.md.

namespace sandbox::pandastack {

using std::chrono::milliseconds;

namespace {

constexpr std::size_t kMaxArgument = 64 << 10;  // Linux takes 128 KiB
constexpr std::size_t kMaxLine = 64 << 20;
constexpr std::size_t kMaxRefusal = 256 << 10;

// The lines of a command's stdout, decoded: the status, then the body.
class Lines final : public RelayAnswer {
 public:
  explicit Lines(std::unique_ptr<ExecStream> stream) : stream_(std::move(stream)) {}
  awaitable<int> status();
  awaitable<std::optional<std::string>> read() override;

 private:
  awaitable<std::optional<std::string>> line();
  std::unique_ptr<ExecStream> stream_;
  std::string text_, complaint_;
};

Error cut(const std::string& why, Outcome outcome = Outcome::unknown) {
  return Error(Failure::cut, outcome, "the relay cannot be called: " + why);
}

awaitable<std::optional<std::string>> Lines::line() {
  for (;;) {
    std::size_t end = text_.find('\n');
    if (end != std::string::npos) {
      std::string line = text_.substr(0, end);
      text_.erase(0, end + 1);
      co_return line;
    }
    auto output = co_await stream_->next();
    if (!output) co_return std::nullopt;
    if (output->is_stderr)
      complaint_ = (complaint_ + output->text).substr(0, 500);
    else
      text_ += output->text;
    if (text_.size() > kMaxLine) throw cut("it said something without end");
  }
}

awaitable<int> Lines::status() {
  // Outputs of a login shell may come before it.
  for (int i = 0; i < 100; ++i) {
    auto first = co_await line();
    if (!first) throw cut(complaint_.empty() ? "the command ended at once" : complaint_);
    if (first->starts_with("0 ")) throw cut(first->substr(2), Outcome::refused);
    int status = 0;
    auto [rest, failed] = std::from_chars(first->data(), first->data() + first->size(), status);
    if (failed == std::errc() && rest == first->data() + first->size() && status >= 100)
      co_return status;
  }
  throw cut("it says something else");
}

awaitable<std::optional<std::string>> Lines::read() {
  auto next = co_await line();
  if (!next) throw cut("the answer was cut off");
  if (*next == ".") co_return std::nullopt;
  auto bytes = schemas::base64_decode(*next);
  if (!bytes) throw cut("the answer is garbled");
  co_return std::move(*bytes);
}

class Exec final : public Carrier {
 public:
  Exec(Client& client, const Vm& vm) : client_(client), vm_(vm) {}
  awaitable<std::unique_ptr<RelayAnswer>> ask(std::string method, std::string target,
                                              std::string body, milliseconds limit) override;

 private:
  Client& client_;
  const Vm& vm_;
};

awaitable<std::unique_ptr<RelayAnswer>> Exec::ask(std::string method, std::string target,
                                                  std::string body, milliseconds limit) {
  constexpr std::chrono::seconds kSilence{25};
  std::string argument = schemas::base64_encode(body);
  if (argument.size() > kMaxArgument) {
    std::string path = vm_.package + "/body-" + random_hex(8);
    co_await client_.put_file(vm_.id, path, std::move(body));
    argument = "@" + path;
  }
  std::string command = "python3 -I " + shell_word(vm_.package + "/pykeep_guest/main.py") +
                        " call " + shell_word(method) + " " + shell_word(target);
  if (!argument.empty()) command += " " + shell_word(argument);
  auto stream = co_await client_.exec_stream(vm_.id, std::move(command), limit, kSilence);
  auto lines = std::make_unique<Lines>(std::move(stream));
  int status = co_await lines->status();
  if (status < 400) co_return std::move(lines);
  std::string said = co_await read_all(*lines, kMaxRefusal);
  auto refusal = read_refusal(status, said);
  if (refusal) throw std::move(*refusal);
  throw cut("the relay said " + std::to_string(status));
}

}  // namespace

std::unique_ptr<Carrier> make_exec_carrier(Client& client, const Vm& vm) {
  return std::make_unique<Exec>(client, vm);
}

}  // namespace sandbox::pandastack
