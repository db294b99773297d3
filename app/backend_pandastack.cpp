#include <cctype>

#include "app/backends.hpp"
#include "sandbox/pandastack/backend.hpp"

namespace app {

namespace asio = boost::asio;

namespace {

void declare(OptionTable& table, Options& options) {
  PandaStackOptions& pandastack = options.pandastack;
  table.add("pandastack-template", pandastack.template_name,
            "PandaStack's template that sessions start from, in place of --template");
  table
      .add("pandastack-carrier", pandastack.carrier,
           "how requests get to a kernel there: auto, proxy, exec (slower; where no proxy is); "
           "repl: "
           "PandaStack's own kernel instead, with its limits (docs)")
      ->check(CLI::IsMember({"auto", "proxy", "exec", "repl"}));
  table.seconds("pandastack-ttl", pandastack.ttl,
                "until a sandbox there expires that no pykeep keeps alive", 60);
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

Backing make(const Options& options, asio::any_io_executor executor, asio::thread_pool& pool) {
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
  backing.default_python = options.pandastack.template_name;
  return backing;
}

}  // namespace

BackendKind pandastack_backend() {
  BackendKind kind;
  kind.name = "pandastack";
  kind.directory = "pandastack";
  kind.declare = declare;
  kind.make = make;
  return kind;
}

}  // namespace app
