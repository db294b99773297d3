#include "app/backends.hpp"

#include <algorithm>

#include "sandbox/session_store.hpp"
#include "sandbox/state_files.hpp"

namespace app {

namespace {

const std::vector<BackendKind>& kinds() {
  static const std::vector<BackendKind> all{local_backend(), pandastack_backend()};
  return all;
}

const BackendKind& kind_of(const Options& options) {
  return *std::ranges::find(kinds(), options.backend, &BackendKind::name);
}

}  // namespace

std::vector<std::string> backend_names() {
  std::vector<std::string> names;
  for (const BackendKind& kind : kinds()) names.push_back(kind.name);
  return names;
}

void add_backend_options(OptionTable& table, Options& options) {
  for (const BackendKind& kind : kinds())
    if (kind.declare) kind.declare(table, options);
}

Backing make_backing(const Options& options, boost::asio::any_io_executor executor,
                     boost::asio::thread_pool& pool) {
  return kind_of(options).make(options, executor, pool);
}

std::filesystem::path store_root(const Options& options) {
  const std::string& directory = kind_of(options).directory;
  return directory.empty() ? options.state_directory : options.state_directory / directory;
}

void make_state_directory(const Options& options) {
  try {
    sandbox::make_private_directories(options.state_directory);
  } catch (const sandbox::StoreError&) {
  }
}

}  // namespace app
