#include <cctype>

#include "app/backends.hpp"
#include "sandbox/pandastack/backend.hpp"

namespace app {

namespace asio = boost::asio;

namespace {

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

// The key and the address are from PANDASTACK_… alone.
class PandaStack final : public BackendKind {
 public:
  std::string name() const override { return "pandastack"; }
  std::string directory() const override { return "pandastack"; }
  void declare(OptionTable& table) override;
  Backing make(const Options& options, asio::any_io_executor executor,
               asio::thread_pool& pool) const override;

 private:
  std::string template_name_ = "code-interpreter";  // sessions start from it
  std::string carrier_ = "auto";                    // how requests get to a kernel
  std::chrono::seconds ttl_{3600};                  // of a sandbox, when no server keeps it alive
};

void PandaStack::declare(OptionTable& table) {
  table.add("pandastack-template", template_name_,
            "PandaStack's template that sessions start from, in place of --template");
  table
      .add("pandastack-carrier", carrier_,
           "how requests get to a kernel there: auto, proxy, exec (slower; where no proxy is); "
           "repl: PandaStack's own kernel instead, with its limits (docs)")
      ->check(CLI::IsMember({"auto", "proxy", "exec", "repl"}));
  table.seconds("pandastack-ttl", ttl_, "until a sandbox there expires that no pykeep keeps alive",
                60);
}

Backing PandaStack::make(const Options& options, asio::any_io_executor executor,
                         asio::thread_pool& pool) const {
  using sandbox::pandastack::CarrierKind;
  sandbox::pandastack::BackendOptions how;
  how.root = store_root(options);
  how.start_limit = options.start_limit;
  how.ttl = ttl_;
  how.hibernated_ttl = options.sessions.keep;
  if (carrier_ == "proxy") how.carrier = CarrierKind::proxy;
  if (carrier_ == "exec") how.carrier = CarrierKind::exec;
  if (carrier_ == "repl") how.carrier = CarrierKind::repl;
  Backing backing;
  backing.backend = sandbox::pandastack::make_backend(executor, pool, std::move(how));
  backing.find_python = template_there;
  backing.default_python = template_name_;
  return backing;
}

}  // namespace

std::shared_ptr<BackendKind> pandastack_backend() { return std::make_shared<PandaStack>(); }

}  // namespace app
