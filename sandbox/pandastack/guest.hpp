#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/pandastack/carriers.hpp"
#include "sandbox/pandastack/client.hpp"
#include "sandbox/pandastack/relay.hpp"
#include "sandbox/pandastack/vm_records.hpp"

namespace sandbox::pandastack {

// What runs in a microVM on our behalf: the relay and, by way of it, the kernel. Shared by all that
// speak to it; whoever was destroyed in the middle of a call has done so for the others too.
class Guest final : public Route {
 public:
  Guest(std::shared_ptr<Client> client, Vm vm, std::shared_ptr<CarrierKind> kind);

  Client& client() { return *client_; }
  std::shared_ptr<Client> shared_client() const { return client_; }
  const Vm& vm() const { return vm_; }

  // What PandaStack says of the microVM; nullopt when it is gone for good. A 404 alone is not
  // believed, since it may only not be known everywhere. Throws Error.
  awaitable<std::optional<SandboxInfo>> look();

  // For a guest that is new, or has just become another one by a restore: puts the packages there
  // if they are not, and a new secret, and starts. Installs IPython where that is missing. Throws
  // Error, or StartError when the guest cannot run a kernel.
  awaitable<RelayState> set_up(std::vector<std::pair<std::string, std::string>> environment,
                               bool is_new);
  // For a guest that gets no kernel of ours: the packages alone, for script(). Throws Error.
  awaitable<void> install();
  // `start` alone: what runs is left alone. Throws as set_up().
  awaitable<RelayState> start();
  // One of the guest's scripts (guest/) with one argument, JSON: what it printed. It may come to be
  // run more than once. Throws Error.
  awaitable<std::string> script(std::string name, boost::json::object argument,
                                std::uint64_t cap = 1 << 20);

  awaitable<std::unique_ptr<RelayAnswer>> ask(std::string method, std::string target,
                                              std::string body,
                                              std::chrono::milliseconds limit) override;
  awaitable<std::optional<RelayState>> mend() override;

 private:
  awaitable<ExecResult> put_in_place(
      const std::vector<std::pair<std::string, std::string>>& environment, bool with_packages,
      bool and_start);
  awaitable<RelayState> started(ExecResult result);
  std::string start_command() const;

  std::shared_ptr<Client> client_;
  Vm vm_;
  std::shared_ptr<CarrierKind> carrier_kind_;
  std::unique_ptr<Carrier> carrier_;
};

}  // namespace sandbox::pandastack
