#pragma once

#include <memory>
#include <string>

#include "async/task_group.hpp"
#include "sandbox/pandastack/backend.hpp"
#include "sandbox/pandastack/client.hpp"
#include "sandbox/pandastack/vm_records.hpp"

namespace sandbox::pandastack {

// What all sandboxes of one server share: the connection, and order among the microVMs.
class House {
 public:
  House(boost::asio::any_io_executor executor_, boost::asio::thread_pool& pool_,
        BackendOptions options_)
      : executor(executor_),
        pool(pool_),
        options(std::move(options_)),
        carrier(std::make_shared<CarrierKind>(options.carrier)),
        tasks(executor_),
        reaping_(executor_) {}

  // Throws StartError: no key, no libcurl. The first call also begins to reap.
  awaitable<std::shared_ptr<Client>> connect();

  // A microVM for a session: from_snapshot or a template is set in `request`, all else is added
  // here. Until the session's record names it, the tag in its record does. Throws Error.
  awaitable<SandboxInfo> create(const SandboxSpec& spec, CreateRequest request);
  awaitable<SessionVm> record_of(const SandboxSpec& spec);
  // From now on the session's microVM is this one, or none. Throws StoreError.
  awaitable<void> remember(const SandboxSpec& spec, std::optional<Vm> vm);

  // Deletes a microVM that no session has any more; but where snapshots were made of it, it is left
  // to expire at once, since a deletion would take them along. Throws Error.
  awaitable<void> let_go(std::string id);
  // The same in the background; what fails is found by the reaper one day.
  void let_go_soon(std::string id);

  void stop_reaping() { reaping_.cancel(); }
  awaitable<void> join();

  boost::asio::any_io_executor executor;
  boost::asio::thread_pool& pool;
  BackendOptions options;
  std::shared_ptr<CarrierKind> carrier;  // of all its sandboxes

  async::TaskGroup tasks;

 private:
  awaitable<void> let_go_quietly(std::string id);
  awaitable<SandboxInfo> find(const std::string& tag, Error failure);
  awaitable<void> reap();
  awaitable<void> reap_once();

  async::TaskGroup reaping_;
  std::shared_ptr<Client> client_;
  std::string owner_;
};

}  // namespace sandbox::pandastack
