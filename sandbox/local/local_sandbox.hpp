#pragma once

#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <string>

#include "async/task_group.hpp"
#include "sandbox/kernel.hpp"
#include "sandbox/local/backend.hpp"
#include "sandbox/local/process.hpp"
#include "sandbox/local/spill.hpp"
#include "sandbox/local/workspace.hpp"
#include "sandbox/sandbox.hpp"

namespace sandbox::local {

// A process in its sandbox, the kernel in it, and its workspace. Watches what the kernel (Linux)
// cannot limit: the size of the workspace, and memory where there is no control group.
class LocalSandbox : public Sandbox {
 public:
  // Throws StartError or std::system_error.
  LocalSandbox(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool,
               const SandboxSpec& spec, std::shared_ptr<Process> process,
               const BackendOptions& options);
  ~LocalSandbox() override;

  // As Kernel::ready.
  awaitable<void> ready(std::chrono::milliseconds limit) { return kernel_.ready(limit); }

  awaitable<void> run(Execution& execution) override;
  awaitable<void> answer(Execution& execution, std::optional<std::string> value) override;
  bool alive() const override { return kernel_.alive(); }
  std::string description() const override;
  Files& files() override { return files_; }
  Usage usage() override { return process_->usage(); }
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

  std::shared_ptr<Process> process_;
  std::shared_ptr<Sampled> sampled_;
  WorkspaceFiles files_;
  WorkspaceSpill spill_;
  Kernel kernel_;
  async::TaskGroup tasks_;
};

}  // namespace sandbox::local
