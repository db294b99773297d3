#include "app/keep.hpp"

#include "app/version.hpp"
#include "async/task_group.hpp"
#include "tools/prompts.hpp"
#include "tools/resource_changes.hpp"
#include "tools/tools.hpp"

namespace app {

namespace {

constexpr std::size_t kPoolThreads = 2;

mcp::Implementation self() {
  mcp::Implementation implementation;
  implementation.name = "pykeep";
  implementation.title = "pykeep: Python sandbox";
  implementation.version = PYKEEP_VERSION;
  return implementation;
}

tools::UploadPolicy uploads(const Options& options) {
  tools::UploadPolicy policy;
  policy.max_bytes = options.upload_max;
  for (const std::string& root : options.upload_roots)
    policy.roots.push_back(std::filesystem::canonical(root));
  if (!policy.roots.empty()) return policy;
  // Over HTTP the directory of a service says nothing of what its clients may read.
  if (options.http.is_used) return policy;
  // Many clients start their servers in /, which nobody means to open to the model.
  std::error_code gone;
  auto here = std::filesystem::current_path(gone);
  if (!gone && here != "/") policy.roots.push_back(here);
  return policy;
}

tools::SessionPolicy policy(const Options& options, const Backing& backing) {
  tools::SessionPolicy policy = options.sessions;
  if (!backing.default_python.empty()) policy.default_python = backing.default_python;
  return policy;
}

// What a new session nobody asked anything special of will be like.
sandbox::SandboxSpec usual_session(const tools::FindPython& find_python,
                                   const tools::SessionPolicy& policy) {
  sandbox::SandboxSpec spec;
  spec.python = find_python(policy.default_python);
  spec.limits = policy.limits;
  spec.environment = policy.environment;
  return spec;
}

tools::TicketLimits ticket_limits(const Options& options) {
  tools::TicketLimits limits;
  limits.upload_bytes = options.upload_max;
  return limits;
}

}  // namespace

Keep::Keep(boost::asio::io_context& io, const Options& options)
    : pool(kPoolThreads),
      backing(make_backing(options, io.get_executor(), pool)),
      backend(*backing.backend),
      store(store_root(options)),
      snapshot_store(store.root(), tools::snapshot_limits(options.sessions)),
      sessions(io.get_executor(), pool, backend, store, snapshot_store, policy(options, backing),
               backing.find_python, &observers),
      snapshots(pool, backend, snapshot_store, sessions),
      tickets(sessions, ticket_limits(options)),
      resources(sessions),
      server(self(), tools::instructions(backend.capabilities().network_isolation),
             offer(options)) {
  observers.add(std::make_shared<tools::ResourceChanges>(hub));
}

mcp::Offer Keep::offer(const Options& options) {
  mcp::Offer offer;
  offer.tools = tools::all(sessions, snapshots, pool, uploads(options), tickets);
  offer.prompts = tools::prompts();
  offer.complete = tools::completer(sessions);
  offer.resources = &resources;
  offer.hub = &hub;
  // A durable session mostly has an image of its own.
  if (options.sessions.default_name.empty())
    offer.tools_listed = [this] {
      try {
        backend.prepare(usual_session(backing.find_python, sessions.policy()));
      } catch (const sandbox::StartError&) {
        // The first call will say what is wrong.
      }
    };
  return offer;
}

namespace {

async::awaitable<void> work_and_stop(Keep& keep,
                                     std::function<async::awaitable<void>(Keep&)> work) {
  std::exception_ptr failure;
  try {
    co_await work(keep);
  } catch (...) {
    failure = std::current_exception();
  }
  co_await keep.backend.stop();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

void run_to_end(const Options& options, std::function<async::awaitable<void>(Keep&)> work) {
  boost::asio::io_context io(1);
  Keep keep(io, options);
  async::TaskGroup root(io.get_executor());
  root.spawn(work_and_stop(keep, std::move(work)));
  io.run();
}

}  // namespace app
