#include "sandbox/pandastack/backend.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/this_coro.hpp>

#include "sandbox/pandastack/channel.hpp"
#include "sandbox/pandastack/guest_kernel.hpp"
#include "sandbox/pandastack/house.hpp"
#include "sandbox/pandastack/layers.hpp"
#include "sandbox/pandastack/persist.hpp"
#include "sandbox/pandastack/remote_sandbox.hpp"
#include "sandbox/pandastack/repl_channel.hpp"
#include "sandbox/session_store.hpp"

namespace sandbox::pandastack {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using namespace std::chrono_literals;

namespace {

constexpr auto kStopLimit = 5s;

class RemoteBackend final : public Backend {
 public:
  RemoteBackend(asio::any_io_executor executor, asio::thread_pool& pool, BackendOptions options)
      : house_(executor, pool, std::move(options)) {}

  awaitable<std::unique_ptr<Sandbox>> start(SandboxSpec spec) override;
  awaitable<std::unique_ptr<Sandbox>> thaw(fs::path image, SandboxSpec spec, Thaw reason) override;
  awaitable<std::unique_ptr<Sandbox>> adopt(SandboxSpec spec) override;
  awaitable<void> forget(SandboxSpec spec) override;
  awaitable<void> discard(fs::path image) override;
  awaitable<void> stop() override;
  std::unique_ptr<Files> files(const SandboxSpec&) override {
    throw StartError("the files of this session are in its sandbox");
  }
  Capabilities capabilities() const override { return pandastack::capabilities(is_repl()); }
  awaitable<std::vector<Layer>> check() override { return check_layers(house_); }

 private:
  using Made = std::unique_ptr<RemoteSandbox>;

  awaitable<std::shared_ptr<Guest>> guest_of(Vm vm);
  awaitable<Made> start_again(const SandboxSpec& spec, Vm vm);
  awaitable<Made> start_new(const SandboxSpec& spec);
  awaitable<Made> wake(const SandboxSpec& spec, Image image);
  awaitable<Made> restore(const SandboxSpec& spec, Image image, Thaw reason);
  Made make(const SandboxSpec& spec, std::shared_ptr<Guest> guest,
            const std::optional<RelayState>& state, Start how, bool kept_files);
  bool is_repl() const { return *house_.carrier == CarrierKind::repl; }

  House house_;
};

awaitable<std::shared_ptr<Guest>> RemoteBackend::guest_of(Vm vm) {
  auto client = co_await house_.connect();
  co_return std::make_shared<Guest>(client, std::move(vm), house_.carrier);
}

// Our kernel, of which the relay says so much; without it, the vendor's own.
RemoteBackend::Made RemoteBackend::make(const SandboxSpec& spec, std::shared_ptr<Guest> guest,
                                        const std::optional<RelayState>& state, Start how,
                                        bool kept_files) {
  std::unique_ptr<RemoteChannel> channel;
  if (state)
    channel = std::make_unique<RelayChannel>(
        house_.executor, guest, *state, static_cast<std::uint64_t>(guest->vm().memory_mb) << 20,
        house_.options.patience);
  else
    channel = make_repl_channel(house_.executor, guest->shared_client(), guest->vm().id);
  RemoteSandbox::Origin origin;
  origin.how = how;
  origin.kept_files = kept_files;
  origin.template_name = spec.python.name;
  return std::make_unique<RemoteSandbox>(house_, spec, std::move(guest), std::move(channel),
                                         std::move(origin));
}

// ---- a new kernel

awaitable<std::unique_ptr<Sandbox>> RemoteBackend::start(SandboxSpec spec) {
  std::string problem;
  try {
    SessionVm record = co_await house_.record_of(spec);
    Made sandbox;
    if (record.vm) sandbox = co_await start_again(spec, *record.vm);
    if (!sandbox) sandbox = co_await start_new(spec);
    co_return std::move(sandbox);
  } catch (const Error& failure) {
    problem = readable(failure);
  } catch (const boost::system::system_error&) {  // we are cancelled
    throw;
  } catch (const std::runtime_error& failure) {
    problem = failure.what();
  }
  throw StartError(problem);
}

// In the session's microVM, which has its files. Null when that is gone.
awaitable<RemoteBackend::Made> RemoteBackend::start_again(const SandboxSpec& spec, Vm vm) {
  auto guest = co_await guest_of(std::move(vm));
  bool exists = co_await bring_up(*guest, house_.options.ttl);
  if (!exists) co_return nullptr;
  std::optional<RelayState> state;
  if (!is_repl()) state = co_await fresh_kernel(*guest);
  Made sandbox = make(spec, guest, state, Start::cold, true);
  co_await sandbox->ready(house_.options.start_limit);
  co_await house_.remember(spec, guest->vm());
  co_return std::move(sandbox);
}

awaitable<RemoteBackend::Made> RemoteBackend::start_new(const SandboxSpec& spec) {
  CreateRequest request;
  request.template_name = spec.python.name;
  SandboxInfo made = co_await house_.create(spec, std::move(request));
  Vm vm;
  vm.id = made.id;
  vm.cpu = made.cpu;
  vm.memory_mb = made.memory_mb;
  std::exception_ptr failure;
  Made sandbox;
  try {
    auto guest = co_await guest_of(std::move(vm));
    std::optional<RelayState> state;
    if (is_repl())
      co_await guest->install();
    else
      state = co_await guest->set_up(spec.environment, true);
    sandbox = make(spec, guest, state, Start::cold, false);
    co_await sandbox->ready(house_.options.start_limit);
    co_await house_.remember(spec, guest->vm());
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) co_return std::move(sandbox);
  sandbox.reset();
  house_.let_go_soon(made.id);
  std::rethrow_exception(failure);
}

// ---- one that is there

awaitable<std::unique_ptr<Sandbox>> RemoteBackend::adopt(SandboxSpec spec) {
  SessionVm record = co_await house_.record_of(spec);
  if (!record.vm || is_repl()) co_return nullptr;
  std::string problem;
  try {
    auto guest = co_await guest_of(std::move(*record.vm));
    bool exists = co_await bring_up(*guest, house_.options.ttl);
    if (!exists) co_return nullptr;
    auto state = co_await kernel_at_rest(*guest);
    if (!state) co_return nullptr;
    Made sandbox = make(spec, guest, *state, Start::image, true);
    co_await sandbox->resumed("wake", house_.options.start_limit);
    co_await house_.remember(spec, guest->vm());
    co_return std::move(sandbox);
  } catch (const Error& failure) {
    problem = readable(failure);
  } catch (const Refusal& failure) {
    problem = failure.what();
  } catch (const StoreError& failure) {
    problem = failure.what();
  } catch (const StartError&) {
    throw;
  } catch (const boost::system::system_error&) {
    throw;
  } catch (const std::runtime_error& failure) {  // it does not answer: what it had is lost
    spdlog::warn("session {}: its kernel is not taken over: {}", spec.name, failure.what());
    co_return nullptr;
  }
  throw StartError("The session's sandbox cannot be reached: " + problem +
                   " Nothing was changed; try again.");
}

awaitable<std::unique_ptr<Sandbox>> RemoteBackend::thaw(fs::path image, SandboxSpec spec,
                                                        Thaw reason) {
  auto read = [&image] { return read_image(image); };
  auto record = co_await async::on_pool(house_.pool, read);
  if (!record) throw ThawError("It is not an image of this backend.");
  bool hibernated = record->snapshot.empty();
  std::string problem, refusal;
  try {
    Made sandbox;
    if (hibernated)
      sandbox = co_await wake(spec, std::move(*record));
    else
      sandbox = co_await restore(spec, std::move(*record), reason);
    co_return std::move(sandbox);
  } catch (const Error& failure) {
    bool for_now = failure.status == 0 || (failure.status >= 401 && failure.status <= 403) ||
                   failure.status == 429 || failure.status == 503 || failure.status == 507;
    (for_now ? refusal : problem) = readable(failure);
  } catch (const StoreError& failure) {
    refusal = failure.what();
  } catch (const StartError&) {
    throw;
  } catch (const boost::system::system_error&) {  // we are cancelled
    throw;
  } catch (const std::runtime_error& failure) {
    problem = failure.what();
  }
  if (!refusal.empty()) throw StartError(refusal);
  throw ThawError(problem);
}

awaitable<RemoteBackend::Made> RemoteBackend::wake(const SandboxSpec& spec, Image image) {
  SessionVm record = co_await house_.record_of(spec);
  if (!record.vm || record.vm->id != image.vm.id)
    throw ThawError("its sandbox is not this session's any more.");
  auto guest = co_await guest_of(std::move(*record.vm));
  bool exists = co_await bring_up(*guest, house_.options.ttl);
  if (!exists)
    throw ThawError("its sandbox is gone at PandaStack: it expired, or was deleted there.");
  auto state = co_await kernel_at_rest(*guest);
  if (!state) throw ThawError("its kernel did not come back with the sandbox.");
  Made sandbox = make(spec, guest, *state, Start::image, true);
  co_await sandbox->resumed("wake", house_.options.start_limit);
  co_await house_.remember(spec, guest->vm());
  co_return std::move(sandbox);
}

awaitable<RemoteBackend::Made> RemoteBackend::restore(const SandboxSpec& spec, Image image,
                                                      Thaw reason) {
  CreateRequest request;
  request.from_snapshot = image.snapshot;
  request.template_name = image.template_name;
  request.cpu = image.vm.cpu;
  request.memory_mb = image.vm.memory_mb;
  SandboxInfo made = co_await house_.create(spec, std::move(request));
  Vm vm = std::move(image.vm);
  vm.id = made.id;
  std::exception_ptr failure;
  Made sandbox;
  try {
    auto guest = co_await guest_of(std::move(vm));
    co_await guest->set_up(spec.environment, false);  // its twins have another secret from now on
    auto state = co_await kernel_at_rest(*guest);
    if (!state) throw ThawError("Its kernel did not come back with the sandbox.");
    sandbox = make(spec, guest, *state, Start::image, true);
    co_await sandbox->resumed(name_of(reason), house_.options.start_limit);
    co_await house_.remember(spec, guest->vm());
  } catch (...) {
    failure = std::current_exception();
  }
  if (!failure) co_return std::move(sandbox);
  sandbox.reset();
  house_.let_go_soon(made.id);
  std::rethrow_exception(failure);
}

// ---- what is not needed any more

awaitable<void> RemoteBackend::forget(SandboxSpec spec) {
  co_await asio::this_coro::throw_if_cancelled(false);
  try {
    SessionVm record = co_await house_.record_of(spec);
    if (!record.vm) co_return;
    co_await house_.remember(spec, std::nullopt);
    house_.let_go_soon(record.vm->id);
  } catch (const std::exception& failure) {
    spdlog::warn("session {}: its sandbox may still be there: {}", spec.name, failure.what());
  }
}

awaitable<void> RemoteBackend::discard(fs::path image) {
  auto read = [&image] { return read_image(image); };
  auto record = co_await async::on_pool(house_.pool, read);
  if (!record || record->snapshot.empty()) co_return;
  std::string problem;
  try {
    auto client = co_await house_.connect();
    co_await client->remove_snapshot(record->snapshot);
  } catch (const Error& failure) {
    problem = readable(failure);
  } catch (const StartError& failure) {
    problem = failure.what();
  }
  if (!problem.empty()) throw StoreError("It cannot be deleted at PandaStack. " + problem);
}

awaitable<void> RemoteBackend::stop() {
  co_await asio::this_coro::throw_if_cancelled(false);
  house_.stop_reaping();
  auto ending = house_.join();
  bool ended = co_await async::within(kStopLimit, std::move(ending));
  if (!ended) house_.tasks.cancel();
  if (!ended) co_await house_.join();
}

}  // namespace

std::unique_ptr<Backend> make_backend(asio::any_io_executor executor, asio::thread_pool& pool,
                                      BackendOptions options) {
  return std::make_unique<RemoteBackend>(executor, pool, std::move(options));
}

}  // namespace sandbox::pandastack
