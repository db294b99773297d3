#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <filesystem>
#include <memory>

#include "sandbox/kernel.hpp"
#include "sandbox/pandastack/carriers.hpp"
#include "sandbox/pandastack/relay.hpp"
#include "sandbox/sandbox.hpp"

namespace sandbox::pandastack {

struct BackendOptions {
  // Of the stores of sessions and snapshots; what is told apart by it at PandaStack is ours.
  std::filesystem::path root;
  CarrierKind carrier = CarrierKind::automatic;
  // Without use: what a sandbox gets when no server keeps it alive any more, a hibernated one, and
  // how long a kernel may take to start.
  std::chrono::seconds ttl{3600}, hibernated_ttl{7 * 24 * 3600};
  std::chrono::milliseconds start_limit{60'000};
  std::uint64_t full_output = 31ull << 20;  // most of one execution's text in a file: one upload
  OutputLimits output;
  LinkPatience patience;
  HttpOptions http;
  Patience client_patience;
};

// Sandboxes that are microVMs at PandaStack: each has a session's kernel and its files, and
// outlives the server. The key and the address are found when they are first needed (settings.hpp).
// `Template::name` is the template's name there. `pool` outlives the backend, and the backend its
// sandboxes.
std::unique_ptr<Backend> make_backend(boost::asio::any_io_executor executor,
                                      boost::asio::thread_pool& pool, BackendOptions options);

}  // namespace sandbox::pandastack
