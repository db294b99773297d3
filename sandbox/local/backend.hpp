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
  // Where the backend keeps its own files: what runs inside, images of Pythons that have no place
  // for them, workspaces that wait for their session (so: on the file system of the sessions).
  std::filesystem::path kernel_root;
  std::chrono::milliseconds start_limit{60'000};  // for Python to come up
  std::uint64_t full_output = 64ull << 20;        // most of one execution's text on disk
  OutputLimits output;
  bool images = true;          // false: every kernel starts cold and none can be frozen
  std::size_t spares = 1;      // prepared at a time, at most
  bool refill_spares = false;  // prepare another as soon as one was taken
  std::chrono::milliseconds spare_life{10 * 60'000};  // one that nobody took then ends
};

// Sandboxes on this machine: launch() and a kernel in each, thawed from the image of its template
// where there is one that fits, else started cold; then an image is made in the background, once.
// Touches nothing before the first start. `pool` outlives the backend, and the backend outlives its
// sandboxes. start(), thaw() and prepare() are to be awaited on the main thread (see launch()).
std::unique_ptr<Backend> make_backend(boost::asio::any_io_executor executor,
                                      boost::asio::thread_pool& pool, BackendOptions options);

// Makes the image that kernels of this Python are thawed from, in the place of the last one, and
// returns where it is. Takes a few seconds. Throws StartError or FreezeError.
awaitable<std::filesystem::path> bake(boost::asio::any_io_executor executor,
                                      boost::asio::thread_pool& pool, BackendOptions options,
                                      Template python);

}  // namespace sandbox::local
