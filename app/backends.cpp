#include "app/backends.hpp"

#include <algorithm>

#include "sandbox/session_store.hpp"
#include "sandbox/state_files.hpp"

namespace app {

namespace {

const BackendKind& kind_of(const Options& options) {
  auto has_name = [&](const auto& kind) { return kind->name() == options.backend; };
  return **std::ranges::find_if(options.backends, has_name);
}

}  // namespace

std::vector<std::shared_ptr<BackendKind>> all_backends() {
  return {local_backend(), pandastack_backend()};
}

Backing make_backing(const Options& options, boost::asio::any_io_executor executor,
                     boost::asio::thread_pool& pool) {
  return kind_of(options).make(options, executor, pool);
}

std::filesystem::path store_root(const Options& options) {
  std::string directory = kind_of(options).directory();
  return directory.empty() ? options.state_directory : options.state_directory / directory;
}

void make_state_directory(const Options& options) {
  try {
    sandbox::make_private_directories(options.state_directory);
  } catch (const sandbox::StoreError&) {
  }
}

}  // namespace app
