#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/option_table.hpp"
#include "app/options.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/sessions.hpp"

namespace app {

// Where sandboxes come from.
struct Backing {
  std::unique_ptr<sandbox::Backend> backend;
  tools::FindPython find_python;  // may be used as long as the backend is there
  std::string default_python;     // in place of --template; empty: --template counts
};

// To add one: its folder in sandbox/, its file here, its line below and its place in backends.cpp.
struct BackendKind {
  std::string name;       // of --backend
  std::string directory;  // of its stores, in the state directory; empty: that itself
  // Its own options; may be null.
  void (*declare)(OptionTable&, Options&) = nullptr;
  Backing (*make)(const Options&, boost::asio::any_io_executor,
                  boost::asio::thread_pool&) = nullptr;
};
BackendKind local_backend();       // backend_local.cpp
BackendKind pandastack_backend();  // backend_pandastack.cpp

std::vector<std::string> backend_names();
void add_backend_options(OptionTable& table, Options& options);

// The one that the options name. Touches nothing yet. `pool` outlives it.
Backing make_backing(const Options& options, boost::asio::any_io_executor executor,
                     boost::asio::thread_pool& pool);

// Where its sessions and snapshots are kept: a session of one backend is nothing to another.
std::filesystem::path store_root(const Options& options);

// The state directory, 0700 if it has to be made: for commands that write below it before any
// session does. What keeps them from it shows when they write.
void make_state_directory(const Options& options);

}  // namespace app
