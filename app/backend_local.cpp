#include "app/backends.hpp"
#include "sandbox/local/backend.hpp"
#include "sandbox/local/templates.hpp"

namespace app {

namespace asio = boost::asio;

namespace {

class Local final : public BackendKind {
 public:
  std::string name() const override { return "local"; }
  Backing make(const Options& options, asio::any_io_executor executor,
               asio::thread_pool& pool) const override;
};

Backing Local::make(const Options& options, asio::any_io_executor executor,
                    asio::thread_pool& pool) const {
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

}  // namespace

std::shared_ptr<BackendKind> local_backend() { return std::make_shared<Local>(); }

}  // namespace app
