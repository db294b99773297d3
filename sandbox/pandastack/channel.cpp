#include "sandbox/pandastack/channel.hpp"

#include "sandbox/pandastack/pump.hpp"

namespace sandbox::pandastack {

namespace asio = boost::asio;
namespace json = boost::json;
using std::chrono::milliseconds;
using std::chrono::steady_clock;
using namespace std::chrono_literals;

namespace {

constexpr auto kExitLimit = 5s;

// The id of a cell that it begins.
std::optional<std::int64_t> cell_of(const json::object& header) {
  const json::value* what = header.if_contains("op");
  const json::value* id = header.if_contains("id");
  bool begins = what && what->is_string() && what->get_string() == "execute";
  if (!begins || !id || !id->is_int64()) return std::nullopt;
  return id->get_int64();
}

}  // namespace

RelayChannel::RelayChannel(asio::any_io_executor executor, std::shared_ptr<Route> route,
                           const RelayState& state, std::uint64_t memory, LinkPatience patience)
    : pump_(std::make_shared<Pump>(executor, std::move(route), state, memory, patience)) {
  Pump::start(pump_);
}

RelayChannel::~RelayChannel() {
  let_go("its session was left");
  pump_->drop_signals();
}

void RelayChannel::let_go(std::string because) {
  if (pump_->inbox.is_closed()) return;
  Exit exit;
  exit.cause = std::move(because);
  pump_->stop();
  pump_->end(std::move(exit));
}

awaitable<void> RelayChannel::settle(milliseconds limit) {
  auto pump = pump_;
  auto joining = pump->settle();
  co_await async::within(limit, std::move(joining));
}

std::optional<KernelEvent> RelayChannel::poll() { return pump_->inbox.pop(); }

awaitable<KernelEvent> RelayChannel::next() {
  auto pump = pump_;
  for (;;) {
    if (auto event = pump->inbox.pop()) co_return std::move(*event);
    if (pump->inbox.is_closed()) co_return Closed();
    co_await pump->inbox.arrival();
  }
}

awaitable<void> RelayChannel::send(json::object header, std::string payload) {
  if (pump_->inbox.is_closed())
    throw boost::system::system_error(asio::error::not_connected, "send to the kernel");
  if (auto cell = cell_of(header)) pump_->inbox.begin_cell(*cell);
  pump_->send(encode_frame(header, payload));
  co_return;
}

void RelayChannel::interrupt() { Pump::signal(pump_, "interrupt"); }

void RelayChannel::kill_children() { Pump::signal(pump_, "kill_children"); }

void RelayChannel::kill() {
  pump_->killed = true;
  pump_->look();  // to learn of its end
  Pump::signal(pump_, "kill");
}

awaitable<Exit> RelayChannel::exit() {
  auto pump = pump_;
  auto deadline = steady_clock::now() + kExitLimit;
  while (!pump->inbox.is_closed()) {
    if (!pump->killed) {
      co_await pump->inbox.arrival();
      continue;
    }
    auto left = std::chrono::ceil<milliseconds>(deadline - steady_clock::now());
    if (left > 0ms)
      co_await pump->inbox.arrival(left);
    else
      pump->lose("killed, and its end is not known after 5 s");
  }
  co_return pump->inbox.how();
}

std::uint64_t RelayChannel::memory_kills() { return pump_->inbox.memory_kills(); }

}  // namespace sandbox::pandastack
