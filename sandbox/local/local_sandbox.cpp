#include "sandbox/local/local_sandbox.hpp"

#include <fcntl.h>

#include <algorithm>
#include <system_error>

#include "sandbox/bounded_text.hpp"
#include "sandbox/local/ids.hpp"
#include "sandbox/local/kernel_channel.hpp"
#include "sandbox/local/watchdog.hpp"

namespace sandbox::local {

namespace asio = boost::asio;
using namespace std::chrono_literals;

namespace {

constexpr auto kSampling = 2s;

Fd open_directory(const std::filesystem::path& path) {
  Fd fd(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) throw std::system_error(errno, std::generic_category(), path.string());
  return fd;
}

std::string too_full(std::uint64_t used, std::uint64_t limit) {
  return "the workspace holds " + size_text(used) + ", and its limit is " + size_text(limit) +
         ": delete files that are no longer needed";
}

}  // namespace

LocalSandbox::LocalSandbox(asio::any_io_executor executor, asio::thread_pool& pool,
                           FreezeThread& freezing, const SandboxSpec& spec,
                           std::shared_ptr<Process> process, const BackendOptions& options,
                           Origin origin)
    : freezing_(freezing),
      origin_(std::move(origin)),
      process_(std::move(process)),
      sampled_(std::make_shared<Sampled>(executor)),
      files_(spec.workspace, pool),
      spill_(pool, (sampled_->directory = open_directory(spec.workspace)).get(),
             workspace_owner(spec.workspace), options.full_output),
      kernel_(executor, make_kernel_channel(executor, process_, spec.limits.memory), options.output,
              &spill_),
      tasks_(executor) {
  sampled_->limit = spec.limits.workspace;
  tasks_.spawn(guard(process_));
  tasks_.spawn(sample(sampled_, pool));
}

LocalSandbox::~LocalSandbox() {
  process_->kill();
  tasks_.cancel();
}

awaitable<void> LocalSandbox::guard(std::shared_ptr<Process> process) { co_await watch(*process); }

// A cell of two seconds and more is looked at while it runs, a shorter one soon after it.
awaitable<void> LocalSandbox::sample(std::shared_ptr<Sampled> sampled, asio::thread_pool& pool) {
  for (;;) {
    while (!sampled->running) co_await sampled->changed.wait();
    co_await async::sleep_for(kSampling);
    // Far beyond the limit there is no need to know how far.
    sampled->used = co_await disk_usage(pool, sampled->directory.get(), 4 * sampled->limit);
    Execution* running = sampled->running;
    if (!running || sampled->used <= sampled->allowed) continue;
    if (running->stop_requested() == Execution::Stop::none)
      running->notes.push_back("stopped: " + too_full(sampled->used, sampled->limit));
    running->request_stop(Execution::Stop::interrupt);
  }
}

awaitable<void> LocalSandbox::run(Execution& execution) {
  co_await asio::this_coro::throw_if_cancelled(false);
  // A cell that finds the workspace too full may run, since it may be the one that makes room; it
  // only must not make it fuller.
  if (sampled_->used > sampled_->limit)
    execution.notes.push_back(too_full(sampled_->used, sampled_->limit));
  sampled_->allowed = std::max(sampled_->limit, sampled_->used);
  sampled_->running = &execution;
  sampled_->changed.notify();
  auto sampled = sampled_;
  co_await kernel_.run(execution);
  sampled->running = nullptr;
}

awaitable<void> LocalSandbox::answer(Execution& execution, std::optional<std::string> value) {
  return kernel_.answer(execution, std::move(value));
}

std::string LocalSandbox::description() const {
  auto version = [&](const char* key) {
    const auto* value = kernel_.greeting().if_contains(key);
    return value && value->is_string() ? readable_end(value->get_string(), 40) : std::string("?");
  };
  return "Python " + version("python") + ", IPython " + version("ipython");
}

awaitable<void> LocalSandbox::close() {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await kernel_.close();
  tasks_.cancel();
  co_await tasks_.join();
}

}  // namespace sandbox::local
