#include "sandbox/local/backend.hpp"

#include <boost/asio/this_coro.hpp>

#include "sandbox/local/bubblewrap.hpp"
#include "sandbox/local/cgroup.hpp"
#include "sandbox/local/kernel_package.hpp"
#include "sandbox/local/local_sandbox.hpp"
#include "sandbox/local/mounts.hpp"
#include "sandbox/local/probe.hpp"
#include "sandbox/local/process.hpp"

namespace sandbox::local {

namespace asio = boost::asio;

namespace {

// Kernel::ready's reason, with what to do about it.
std::string with_remedy(const std::string& reason, const SandboxSpec& spec) {
  const std::string python = spec.python.python.string();
  if (reason.find("No module named 'IPython'") != reason.npos)
    return python + " has no IPython, which runs the cells. Install it with `" + python +
           " -m pip install ipython` (Debian, Ubuntu: `sudo apt-get install python3-ipython`), or "
           "make an environment with `pykeep template build`.";
  if (reason.find("bwrap: ") != reason.npos)
    return "cannot start the sandbox: " + explain_bwrap(reason);
  return reason + "\nThe interpreter was " + python +
         ". `pykeep doctor` checks it and the sandbox; nothing was left running.";
}

class LocalBackend : public Backend {
 public:
  LocalBackend(asio::any_io_executor executor, asio::thread_pool& pool, BackendOptions options)
      : executor_(executor), pool_(pool), options_(std::move(options)) {}

  awaitable<std::unique_ptr<Sandbox>> start(SandboxSpec spec) override;
  std::unique_ptr<Files> files(const SandboxSpec& spec) override {
    return std::make_unique<WorkspaceFiles>(spec.workspace, pool_);
  }
  Capabilities capabilities() const override;
  awaitable<std::vector<Layer>> check() override;

 private:
  std::unique_ptr<LocalSandbox> launch_in(const SandboxSpec& spec,
                                          const std::filesystem::path& package);

  asio::any_io_executor executor_;
  asio::thread_pool& pool_;
  BackendOptions options_;
};

std::unique_ptr<LocalSandbox> LocalBackend::launch_in(const SandboxSpec& spec,
                                                      const std::filesystem::path& package) try {
  std::error_code absent;
  if (!std::filesystem::exists(spec.python.python, absent))
    throw StartError("there is no Python at " + spec.python.python.string() +
                     ": name another interpreter or environment, or make one with `pykeep template "
                     "build`.");
  std::vector<std::string> argv;
  argv.push_back(spec.python.python.string());
  argv.push_back("-I");
  argv.push_back(std::string(kKernelPackage) + "/pykeep_kernel/main.py");
  std::shared_ptr<Process> process = launch(spec, argv, package);
  return std::make_unique<LocalSandbox>(executor_, pool_, spec, std::move(process), options_);
} catch (const std::system_error& failure) {
  throw StartError(std::string("the sandbox could not be set up: ") + failure.what());
}

awaitable<std::unique_ptr<Sandbox>> LocalBackend::start(SandboxSpec spec) {
  // Once there is a sandbox it is closed in any case; cancelled meanwhile, ready() throws.
  co_await asio::this_coro::throw_if_cancelled(false);
  auto install = [this] { return install_kernel_package(options_.kernel_root); };
  auto package = co_await async::on_pool(pool_, install);
  auto sandbox = launch_in(spec, package);
  std::exception_ptr failure;
  std::string reason;
  try {
    co_await sandbox->ready(options_.start_limit);
  } catch (const boost::system::system_error&) {
    failure = std::current_exception();
  } catch (const std::runtime_error& problem) {
    reason = problem.what();
  }
  if (failure || !reason.empty()) co_await sandbox->close();
  if (failure) std::rethrow_exception(failure);
  if (!reason.empty()) throw StartError(with_remedy(reason, spec));
  co_return std::move(sandbox);
}

Capabilities LocalBackend::capabilities() const {
  Capabilities can;
  can.network_isolation = true;
  for (const Hierarchy& hierarchy : hierarchies())
    for (Controller controller : hierarchy.controllers)
      if (controller == Controller::memory) can.memory_limit_exact = true;
  return can;
}

// On this thread, since the pool must not launch (process.hpp); nothing else goes on in doctor.
awaitable<std::vector<Layer>> LocalBackend::check() {
  auto make_scratch = [this] {
    std::error_code failed;
    return std::filesystem::create_directories(options_.kernel_root, failed);
  };
  co_await async::on_pool(pool_, make_scratch);
  std::vector<Layer> layers = probe_layers(options_.kernel_root);
  co_return layers;
}

}  // namespace

std::unique_ptr<Backend> make_backend(asio::any_io_executor executor, asio::thread_pool& pool,
                                      BackendOptions options) {
  return std::make_unique<LocalBackend>(executor, pool, std::move(options));
}

}  // namespace sandbox::local
