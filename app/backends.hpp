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

// A kind of them, with what it alone can be told. To add one: its folder in sandbox/, its file
// here, its line below and its place in backends.cpp.
class BackendKind {
 public:
  virtual ~BackendKind() = default;
  virtual std::string name() const = 0;  // of --backend
  // Of its stores, in the state directory; empty: that itself.
  virtual std::string directory() const { return {}; }
  virtual void declare(OptionTable&) {}
  virtual Backing make(const Options& options, boost::asio::any_io_executor executor,
                       boost::asio::thread_pool& pool) const = 0;
};
std::shared_ptr<BackendKind> local_backend();       // backend_local.cpp
std::shared_ptr<BackendKind> pandastack_backend();  // backend_pandastack.cpp

// The one that the options name. Touches nothing yet. `pool` outlives it.
Backing make_backing(const Options& options, boost::asio::any_io_executor executor,
                     boost::asio::thread_pool& pool);

// Where its sessions and snapshots are kept: a session of one backend is nothing to another.
std::filesystem::path store_root(const Options& options);

// The state directory, 0700 if it has to be made: for commands that write below it before any
// session does. What keeps them from it shows when they write.
void make_state_directory(const Options& options);

}  // namespace app
