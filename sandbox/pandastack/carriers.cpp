#include "sandbox/pandastack/carriers.hpp"

#include <spdlog/spdlog.h>

namespace sandbox::pandastack {

using std::chrono::milliseconds;

namespace {

constexpr int kAbsent = 3;  // times, until there is no proxy

class Proxy final : public Carrier {
 public:
  Proxy(Client& client, const Vm& vm) : client_(client), vm_(vm) {}
  awaitable<std::unique_ptr<RelayAnswer>> ask(std::string method, std::string target,
                                              std::string body, milliseconds limit) override;

 private:
  class Body;
  Client& client_;
  const Vm& vm_;
};

class Proxy::Body final : public RelayAnswer {
 public:
  explicit Body(std::unique_ptr<Answer> answer) : answer_(std::move(answer)) {}
  awaitable<std::optional<std::string>> read() override { return answer_->read(); }

 private:
  std::unique_ptr<Answer> answer_;
};

awaitable<std::unique_ptr<RelayAnswer>> Proxy::ask(std::string method, std::string target,
                                                   std::string body, milliseconds limit) {
  constexpr std::chrono::seconds kSilence{25};  // the relay says `alive` every 10 s
  ProxyRequest request;
  request.method = std::move(method);
  request.port = vm_.port;
  request.target = std::move(target);
  request.headers.emplace_back("X-Pykeep-Secret", vm_.secret);
  request.headers.emplace_back("Content-Type", "application/octet-stream");
  request.body = std::move(body);
  request.limit = limit;
  request.silence = kSilence;
  std::optional<Refusal> refusal;
  try {
    auto answer = co_await client_.proxy(vm_.id, std::move(request));
    co_return std::make_unique<Body>(std::move(answer));
  } catch (const Error& failure) {
    refusal = read_refusal(failure.status, failure.body);
    if (!refusal) throw;
  }
  throw std::move(*refusal);
}

// Whether the failure is of an API that has no proxy, or of one that does not get through.
bool is_absent(const Error& failure) {
  // Of an unknown route, not of an unknown sandbox.
  if (failure.status == 404) return failure.message.find("page not found") != std::string::npos;
  return failure.status == 405 || failure.status == 501 || failure.status == 502;
}

class Choice final : public Carrier {
 public:
  Choice(Client& client, const Vm& vm, CarrierKind& kind)
      : proxy_(make_proxy_carrier(client, vm)), exec_(make_exec_carrier(client, vm)), kind_(kind) {}
  awaitable<std::unique_ptr<RelayAnswer>> ask(std::string method, std::string target,
                                              std::string body, milliseconds limit) override;

 private:
  std::unique_ptr<Carrier> proxy_, exec_;
  CarrierKind& kind_;
  int absent_ = 0;  // times in a row
};

awaitable<std::unique_ptr<RelayAnswer>> Choice::ask(std::string method, std::string target,
                                                    std::string body, milliseconds limit) {
  if (kind_ == CarrierKind::exec)
    co_return co_await exec_->ask(std::move(method), std::move(target), std::move(body), limit);
  try {
    auto answer =
        co_await proxy_->ask(std::move(method), std::move(target), std::move(body), limit);
    if (kind_ == CarrierKind::automatic) kind_ = CarrierKind::proxy;
    co_return std::move(answer);
  } catch (const Error& failure) {
    absent_ = is_absent(failure) ? absent_ + 1 : 0;
    if (kind_ == CarrierKind::automatic && absent_ >= kAbsent) {
      spdlog::warn(
          "PandaStack's proxy to the guest does not work ({}): requests go by exec, which "
          "is slower",
          failure.what());
      kind_ = CarrierKind::exec;
    }
    throw;
  }
}

}  // namespace

std::unique_ptr<Carrier> make_proxy_carrier(Client& client, const Vm& vm) {
  return std::make_unique<Proxy>(client, vm);
}

std::unique_ptr<Carrier> make_carrier(Client& client, const Vm& vm, CarrierKind& kind) {
  return std::make_unique<Choice>(client, vm, kind);
}

std::string shell_word(std::string_view text) {
  std::string result = "'";
  for (char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace sandbox::pandastack
