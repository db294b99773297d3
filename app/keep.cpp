#include "app/keep.hpp"

#include "app/version.hpp"
#include "sandbox/local/backend.hpp"
#include "tools/tools.hpp"

namespace app {

namespace {

constexpr std::size_t kPoolThreads = 2;

// What a model should know before its first call; under 200 tokens.
constexpr const char* kInstructions =
    "run_python executes code in a persistent, isolated IPython kernel. State persists: define "
    "things once and reuse them; do not reload data in each call. Figures are returned as images: "
    "just plot. End a cell with an expression to see its value. Results name the session: pass "
    "`session` on if your host starts a new connection for each call. Bring data in with "
    "upload_file (by path where possible); files live in /workspace. A result that says `running` "
    "goes on in the background: call wait_execution. There is no network unless a session was "
    "created with it.";

mcp::Implementation self() {
  mcp::Implementation implementation;
  implementation.name = "pykeep";
  implementation.title = "pykeep: Python sandbox";
  implementation.version = PYKEEP_VERSION;
  return implementation;
}

sandbox::local::BackendOptions backend_options(const Options& options) {
  sandbox::local::BackendOptions local;
  local.kernel_root = options.state_directory / "kernel";
  local.start_limit = options.start_limit;
  return local;
}

tools::UploadPolicy uploads(const Options& options) {
  tools::UploadPolicy policy;
  policy.max_bytes = options.upload_max;
  std::error_code absent;
  auto add = [&](const std::filesystem::path& root) {
    auto real = std::filesystem::canonical(root, absent);
    if (!absent && real != "/") policy.roots.push_back(real);
  };
  for (const std::string& root : options.upload_roots) add(root);
  if (options.upload_roots.empty()) add(std::filesystem::current_path(absent));
  return policy;
}

}  // namespace

Keep::Keep(boost::asio::io_context& io, const Options& options)
    : pool(kPoolThreads),
      templates(options.state_directory / "templates"),
      backend(sandbox::local::make_backend(io.get_executor(), pool, backend_options(options))),
      store(options.state_directory),
      sessions(io.get_executor(), pool, *backend, store, options.sessions,
               [this](const std::string& name) { return templates.find(name); }),
      resources(sessions),
      server(self(), kInstructions, tools::all(sessions, pool, uploads(options)), &resources) {}

}  // namespace app
