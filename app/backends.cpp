#include "app/backends.hpp"

#include <algorithm>
#include <cctype>

#include "sandbox/local/backend.hpp"
#include "sandbox/local/templates.hpp"
#include "sandbox/pandastack/backend.hpp"
#include "sandbox/session_store.hpp"
#include "sandbox/state_files.hpp"

namespace app {

namespace asio = boost::asio;

namespace {

Backing local(const Options& options, asio::any_io_executor executor, asio::thread_pool& pool) {
  sandbox::local::BackendOptions how;
  how.kernel_root = options.state_directory / "kernel";
  how.start_limit = options.start_limit;
  how.images = !options.no_images;
  // A stdio server has one session as a rule, and needs its kernel ahead of time just once.
  how.refill_spares = options.http.is_used;
  how.spares = options.http.is_used ? options.http.spares : 1;
  Backing backing;
  backing.backend = sandbox::local::make_backend(executor, pool, std::move(how));
  sandbox::local::Templates templates(options.state_directory / "templates");
  backing.find_python = [templates](const std::string& name) { return templates.find(name); };
  return backing;
}

// Whether there is such a template shows when a sandbox is made of it.
sandbox::Template template_there(const std::string& name) {
  bool is_name = !name.empty() && name.size() <= 100;
  for (unsigned char c : name)
    is_name = is_name && (std::isalnum(c) || c == '-' || c == '_' || c == '.');
  if (!is_name)
    throw sandbox::StartError("\"" + name.substr(0, 100) + "\" is no name of a template.");
  sandbox::Template found;
  found.name = name;
  found.description = "at PandaStack";
  return found;
}

Backing pandastack(const Options& options, asio::any_io_executor executor,
                   asio::thread_pool& pool) {
  using sandbox::pandastack::Way;
  sandbox::pandastack::BackendOptions how;
  how.root = store_root(options);
  how.start_limit = options.start_limit;
  how.ttl = options.pandastack.ttl;
  how.hibernated_ttl = options.sessions.keep;
  if (options.pandastack.carrier == "proxy") how.way = Way::proxy;
  if (options.pandastack.carrier == "exec") how.way = Way::exec;
  if (options.pandastack.carrier == "repl") how.way = Way::repl;
  Backing backing;
  backing.backend = sandbox::pandastack::make_backend(executor, pool, std::move(how));
  backing.find_python = template_there;
  return backing;
}

struct Kind {
  const char* name;
  Backing (*make)(const Options&, asio::any_io_executor, asio::thread_pool&);
  const char* directory;  // of its stores, in the state directory
};

constexpr Kind kKinds[] = {
    {"local", local, ""},
    {"pandastack", pandastack, "pandastack"},
};

const Kind& kind_of(const Options& options) {
  return *std::ranges::find(kKinds, options.backend, [](const Kind& kind) { return kind.name; });
}

}  // namespace

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) names.emplace_back(kind.name);
  return names;
}

Backing make_backing(const Options& options, asio::any_io_executor executor,
                     asio::thread_pool& pool) {
  return kind_of(options).make(options, executor, pool);
}

std::filesystem::path store_root(const Options& options) {
  std::string directory = kind_of(options).directory;
  return directory.empty() ? options.state_directory : options.state_directory / directory;
}

void make_state_directory(const Options& options) {
  try {
    sandbox::make_private_directories(options.state_directory);
  } catch (const sandbox::StoreError&) {
  }
}

}  // namespace app
