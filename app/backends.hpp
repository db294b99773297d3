#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/options.hpp"
#include "sandbox/sandbox.hpp"
#include "tools/sessions.hpp"

namespace app {

// Where sandboxes come from.
struct Backing {
  std::unique_ptr<sandbox::Backend> backend;
  tools::FindPython find_python;  // may be used as long as the backend is there
};

// To add one: its folder in sandbox/, and in backends.cpp its function and its line in the table.
std::vector<std::string> backend_names();

// The one that the options name. Touches nothing yet. `pool` outlives it.
Backing make_backing(const Options& options, boost::asio::any_io_executor executor,
                     boost::asio::thread_pool& pool);

// Where its sessions and snapshots are kept: a session of one backend is nothing to another.
std::filesystem::path store_root(const Options& options);

// The state directory, 0700 if it has to be made: for commands that write below it before any
// session does. What keeps them from it shows when they write.
void make_state_directory(const Options& options);

}  // namespace app
