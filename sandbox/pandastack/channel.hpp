#pragma once

// The kernel link over the relay's records (docs/guest-relay.md): one request a cell, and between
// cells none.

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "sandbox/pandastack/relay.hpp"
#include "sandbox/pandastack/remote_channel.hpp"

namespace sandbox::pandastack {

class Pump;  // pump.hpp

class RelayChannel final : public RemoteChannel {
 public:
  // Of a kernel whose relay said `state`, with `sent`; what that relay holds by now is skipped if
  // it is of an old kernel (`sent` is not 0). `memory` of the guest is for the words of
  // Exit::cause.
  RelayChannel(boost::asio::any_io_executor executor, std::shared_ptr<Route> route,
               const RelayState& state, std::uint64_t memory, LinkPatience patience = {});
  ~RelayChannel() override;  // lets go of the kernel; it lives on

  awaitable<KernelEvent> next() override;
  std::optional<KernelEvent> poll() override;
  // Returns at once: what becomes of the frame shows in what comes, Closed in the end.
  awaitable<void> send(boost::json::object header, std::string payload = {}) override;
  void interrupt() override;
  void kill_children() override;
  void kill() override;
  awaitable<Exit> exit() override;
  std::uint64_t memory_kills() override;

  void let_go(std::string because) override;
  awaitable<void> settle(std::chrono::milliseconds limit) override;

 private:
  std::shared_ptr<Pump> pump_;
};

}  // namespace sandbox::pandastack
