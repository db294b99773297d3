#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>

#include "sandbox/kernel.hpp"
#include "sandbox/sandbox.hpp"

namespace sandbox::local {

struct BackendOptions {
  std::filesystem::path kernel_root;              // where the kernel's own files are kept
  std::chrono::milliseconds start_limit{60'000};  // for Python to come up
  std::uint64_t full_output = 64ull << 20;        // most of one execution's text on disk
  OutputLimits output;
};

// Sandboxes on this machine: launch() and a kernel in each. Touches nothing before the first start.
// `pool` outlives the backend, and the backend outlives its sandboxes. start() is to be awaited on
// the main thread (see launch()).
std::unique_ptr<Backend> make_backend(boost::asio::any_io_executor executor,
                                      boost::asio::thread_pool& pool, BackendOptions options);

}  // namespace sandbox::local
