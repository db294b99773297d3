#pragma once

#include <memory>
#include <string>

#include "async/task_group.hpp"
#include "sandbox/kernel.hpp"
#include "sandbox/pandastack/guest_files.hpp"
#include "sandbox/pandastack/guest_spill.hpp"
#include "sandbox/pandastack/house.hpp"
#include "sandbox/pandastack/remote_channel.hpp"
#include "sandbox/sandbox.hpp"

namespace sandbox::pandastack {

// A microVM with a kernel in it that this server speaks to, and keeps from expiring.
class RemoteSandbox final : public Sandbox {
 public:
  struct Origin {
    Start how = Start::cold;
    bool kept_files = false;
    std::string template_name;
  };
  // `channel` is that of its kernel. `house` outlives it.
  RemoteSandbox(House& house, SandboxSpec spec, std::shared_ptr<Guest> guest,
                std::unique_ptr<RemoteChannel> channel, Origin origin);
  ~RemoteSandbox() override;

  // As Kernel::ready and Kernel::resumed.
  awaitable<void> ready(std::chrono::milliseconds limit) { return kernel_.ready(limit); }
  awaitable<void> resumed(std::string reason, std::chrono::milliseconds limit);

  awaitable<void> run(Execution& execution) override;
  awaitable<void> answer(Execution& execution, std::optional<std::string> value) override {
    return kernel_.answer(execution, std::move(value));
  }
  bool alive() const override { return kernel_.alive(); }
  std::string description() const override;
  std::string background() const override { return kernel_.background(); }
  Files& files() override { return files_; }
  Usage usage() override { return {}; }
  Start how_started() const override { return origin_.how; }
  bool kept_files() const override { return origin_.kept_files; }
  std::uint64_t memory() const override;
  int last_execution() const override;
  awaitable<FreezeReport> freeze(std::filesystem::path image, FreezeOptions options) override;
  awaitable<bool> leave() override;
  awaitable<void> close() override;

 private:
  static awaitable<void> keep_alive(std::shared_ptr<Guest> guest, std::chrono::seconds ttl);
  awaitable<std::string> snapshot(std::chrono::milliseconds limit);
  awaitable<void> introduce(std::chrono::milliseconds limit);
  awaitable<void> hibernate(std::chrono::milliseconds limit);
  awaitable<bool> is_the_sessions();

  House& house_;
  SandboxSpec spec_;
  std::shared_ptr<Guest> guest_;
  Origin origin_;
  GuestFiles files_;
  GuestSpill spill_;
  RemoteChannel& channel_;  // the kernel's
  Kernel kernel_;
  bool running_ = false;
  bool known_ = false;  // the kernel was sent something
  bool left_ = false;   // the kernel goes on without us
  async::TaskGroup tasks_;
};

}  // namespace sandbox::pandastack
