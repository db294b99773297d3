#include "sandbox/pandastack/remote_sandbox.hpp"

#include <spdlog/spdlog.h>

#include <boost/asio/this_coro.hpp>

#include "sandbox/bounded_text.hpp"

namespace sandbox::pandastack {

namespace asio = boost::asio;
namespace json = boost::json;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

namespace {

// A snapshot may be brought to an object store within the call.
constexpr milliseconds kSnapshotLimit = 300s;
constexpr auto kSettle = 1000ms;

}  // namespace

RemoteSandbox::RemoteSandbox(House& house, SandboxSpec spec, std::shared_ptr<Guest> guest,
                             std::unique_ptr<RemoteChannel> channel, Origin origin)
    : house_(house),
      spec_(std::move(spec)),
      guest_(std::move(guest)),
      origin_(std::move(origin)),
      files_(house.tasks, house.pool, guest_),
      spill_(files_, house.options.full_output),
      channel_(*channel),
      kernel_(house.executor, std::move(channel), house.options.output, &spill_),
      tasks_(house.executor) {
  tasks_.spawn(keep_alive(guest_, house.options.ttl));
}

RemoteSandbox::~RemoteSandbox() {
  channel_.let_go("its session was left");
  tasks_.cancel();
}

// PATCH counts as use of the guest, GET does not (PandaStack, agent/internal/api/router.go).
awaitable<void> RemoteSandbox::keep_alive(std::shared_ptr<Guest> guest, std::chrono::seconds ttl) {
  for (;;) {
    co_await async::sleep_for(ttl / 3);
    try {
      co_await guest->client().set_lifecycle(guest->vm().id, ttl.count());
    } catch (const Error& failure) {  // a sandbox that is gone shows with the next cell
      spdlog::warn("the sandbox {} cannot be kept alive: {}", guest->vm().id, failure.what());
    }
  }
}

awaitable<void> RemoteSandbox::resumed(std::string reason, milliseconds limit) {
  json::object told, environment;
  for (const auto& [name, value] : spec_.environment) environment[name] = value;
  told["reason"] = reason;
  told["environment"] = std::move(environment);
  known_ = true;
  co_await kernel_.resumed(std::move(told), limit);
}

awaitable<void> RemoteSandbox::run(Execution& execution) {
  running_ = known_ = true;
  co_await kernel_.run(execution);
  running_ = false;
}

std::string RemoteSandbox::description() const {
  auto version = [&](const char* key) {
    const auto* value = kernel_.greeting().if_contains(key);
    return value && value->is_string() ? readable_end(value->get_string(), 40) : std::string("?");
  };
  std::string carrier = "its proxy";
  if (*house_.carrier == CarrierKind::exec) carrier = "exec";
  if (*house_.carrier == CarrierKind::repl) carrier = "its own sessions";
  return "Python " + version("python") + ", IPython " + version("ipython") + ", in sandbox " +
         guest_->vm().id + " by way of " + carrier;
}

std::uint64_t RemoteSandbox::memory() const {
  return static_cast<std::uint64_t>(guest_->vm().memory_mb) << 20;
}

int RemoteSandbox::last_execution() const {
  const auto* count = kernel_.greeting().if_contains("executions");
  bool sound = count && count->is_int64() && count->get_int64() >= 0 &&
               count->get_int64() < std::numeric_limits<int>::max();
  return sound ? static_cast<int>(count->get_int64()) : 0;
}

// ---- on disk

awaitable<std::string> RemoteSandbox::snapshot(milliseconds limit) {
  auto taking = guest_->client().snapshot(guest_->vm().id);
  auto taken = co_await async::within(limit, std::move(taking));
  if (!taken)
    throw FreezeError("PandaStack was not done with it after " +
                      std::to_string(limit.count() / 1000) + " s; if it is made yet, it expires");
  co_return std::move(*taken);
}

awaitable<void> RemoteSandbox::hibernate(milliseconds limit) {
  Client& client = guest_->client();
  try {
    co_await client.set_lifecycle(guest_->vm().id, house_.options.hibernated_ttl.count());
  } catch (const Error& failure) {  // a plan with shorter ones
    spdlog::info("sandbox {} keeps its time to live: {}", guest_->vm().id, failure.what());
  }
  auto going = client.hibernate(guest_->vm().id);
  bool in_time = co_await async::within(limit, std::move(going));
  // It may well come to it; adopt() then finds the kernel there.
  if (!in_time) throw FreezeError("PandaStack was not done with it in time");
}

// Whoever comes back to a kernel that was sent nothing yet takes it for a new one.
awaitable<void> RemoteSandbox::introduce(milliseconds limit) {
  std::string problem;
  try {
    co_await resumed("wake", limit);
  } catch (const boost::system::system_error&) {  // we are cancelled
    throw;
  } catch (const std::runtime_error& failure) {
    problem = failure.what();
  }
  if (!problem.empty()) throw FreezeError(problem);
}

awaitable<FreezeReport> RemoteSandbox::freeze(std::filesystem::path image, FreezeOptions options) {
  co_await asio::this_coro::throw_if_cancelled(false);
  if (running_) throw FreezeError("a cell is running: it can be saved once the cell has ended");
  if (!kernel_.alive()) throw FreezeError("the kernel has ended: there is nothing to save");
  if (*house_.carrier == CarrierKind::repl)
    throw FreezeError("PandaStack's own kernel does not come back from a snapshot");
  if (!known_) co_await introduce(options.limit);
  Image record;
  record.template_name = origin_.template_name;
  record.vm = guest_->vm();
  auto began = std::chrono::steady_clock::now();
  std::string problem;
  try {
    if (options.keep_running) {
      record.snapshot = co_await snapshot(std::max(options.limit, kSnapshotLimit));
    } else {
      co_await hibernate(options.limit);
    }
  } catch (const Error& failure) {
    problem = readable(failure);
  }
  if (!problem.empty()) throw FreezeError(problem);
  FreezeReport report;
  report.pause = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - began);
  left_ = left_ || !options.keep_running;
  auto write = [&image, &record] {
    write_image(image, record);
    return true;
  };
  co_await async::on_pool(house_.pool, write);
  co_return report;
}

// ---- the end

awaitable<bool> RemoteSandbox::leave() {
  co_await asio::this_coro::throw_if_cancelled(false);
  bool is_to_be_found = co_await is_the_sessions();
  if (!is_to_be_found || !kernel_.alive() || *house_.carrier == CarrierKind::repl) co_return false;
  left_ = true;
  co_await close();
  co_return true;
}

// A restore gives the session another one.
awaitable<bool> RemoteSandbox::is_the_sessions() {
  SessionVm record = co_await house_.record_of(spec_);
  co_return record.vm.has_value() && record.vm->id == guest_->vm().id;
}

awaitable<void> RemoteSandbox::close() {
  co_await asio::this_coro::throw_if_cancelled(false);
  tasks_.cancel();
  co_await tasks_.join();
  bool needed = co_await is_the_sessions();
  if (left_ || !needed) channel_.let_go("its session was left");
  co_await kernel_.close();
  channel_.let_go("it was ended");
  co_await channel_.settle(kSettle);
  if (!needed) house_.let_go_soon(guest_->vm().id);
}

}  // namespace sandbox::pandastack
