#pragma once

#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <optional>
#include <string>

#include "async/task_group.hpp"
#include "sandbox/kernel.hpp"
#include "sandbox/local/backend.hpp"
#include "sandbox/local/image_record.hpp"
#include "sandbox/local/process.hpp"
#include "sandbox/local/spill.hpp"
#include "sandbox/local/workspace.hpp"
#include "sandbox/sandbox.hpp"

namespace sandbox::local {

// Where a kernel came from, and what its own image will refer to.
struct Origin {
  Start how = Start::cold;
  std::string cold_because;  // Sandbox::cold_because
  ImageRecord record;
  Fd base;                    // the template image it was thawed from, itself or by way of another
  std::string cannot_freeze;  // why it was started without the loader; empty otherwise
};

// Freezes block for as long as the disk needs: they get a thread of their own, made for the first.
class FreezeThread {
 public:
  boost::asio::thread_pool& pool() { return pool_ ? *pool_ : pool_.emplace(1); }

 private:
  std::optional<boost::asio::thread_pool> pool_;
};

// A process in its sandbox, the kernel in it, and its workspace. Watches what the kernel (Linux)
// cannot limit: the size of the workspace, and memory where there is no control group.
class LocalSandbox : public Sandbox {
 public:
  // Throws StartError or std::system_error. `freezing` outlives it.
  LocalSandbox(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool,
               FreezeThread& freezing, const SandboxSpec& spec, std::shared_ptr<Process> process,
               const BackendOptions& options, Origin origin);
  ~LocalSandbox() override;

  // As Kernel::ready.
  awaitable<void> ready(std::chrono::milliseconds limit) { return kernel_.ready(limit); }
  // As Kernel::resumed.
  awaitable<void> resumed(boost::json::object how, std::chrono::milliseconds limit) {
    return kernel_.resumed(std::move(how), limit);
  }
  // Its workspace has another name now.
  void move_to(const std::filesystem::path& workspace) { files_.move_to(workspace); }
  Process& process() { return *process_; }

  awaitable<void> run(Execution& execution) override;
  awaitable<void> answer(Execution& execution, std::optional<std::string> value) override;
  bool alive() const override { return kernel_.alive(); }
  std::string description() const override;
  std::string background() const override { return kernel_.background(); }
  Files& files() override { return files_; }
  Usage usage() override { return process_->usage(); }
  Start how_started() const override { return origin_.how; }
  std::string cold_because() const override { return origin_.cold_because; }
  awaitable<FreezeReport> freeze(std::filesystem::path image, FreezeOptions options) override;
  awaitable<void> close() override;

 private:
  // Shared with the coroutine that samples, which may outlive the sandbox by a moment.
  struct Sampled {
    explicit Sampled(boost::asio::any_io_executor executor) : changed(executor) {}
    async::Changed changed;
    Execution* running = nullptr;
    std::uint64_t limit = 0;
    std::uint64_t used = 0;     // as last seen
    std::uint64_t allowed = 0;  // for the cell that runs
    Fd directory;               // the workspace
  };
  static awaitable<void> sample(std::shared_ptr<Sampled> sampled, boost::asio::thread_pool& pool);
  static awaitable<void> guard(std::shared_ptr<Process> process);

  FreezeThread& freezing_;
  Origin origin_;
  std::shared_ptr<Process> process_;
  std::shared_ptr<Sampled> sampled_;
  WorkspaceFiles files_;
  WorkspaceSpill spill_;
  Kernel kernel_;
  async::TaskGroup tasks_;
};

}  // namespace sandbox::local
