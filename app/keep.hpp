#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <functional>
#include <memory>

#include "app/backends.hpp"
#include "app/observers.hpp"
#include "app/options.hpp"
#include "async/async.hpp"
#include "mcp/hub.hpp"
#include "mcp/server.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/session_store.hpp"
#include "tools/resources.hpp"
#include "tools/sessions.hpp"
#include "tools/snapshots.hpp"
#include "tools/tickets.hpp"

namespace app {

// Everything that serves, put together: the only place that knows every concrete type. Starts
// nothing and touches no file until the first tool call (clients start us just to look).
//
// Before it is destroyed, `sessions.shutdown()` has been awaited and the io_context has run dry.
struct Keep {
  Keep(boost::asio::io_context& io, const Options& options);

  boost::asio::thread_pool pool;
  Backing backing;
  sandbox::Backend& backend;
  sandbox::SessionStore store;
  sandbox::SnapshotStore snapshot_store;
  mcp::Hub hub;
  Observers observers;
  tools::Sessions sessions;
  tools::Snapshots snapshots;
  tools::Tickets tickets;
  tools::SessionResources resources;
  mcp::Server server;

 private:
  mcp::Offer offer(const Options& options);
};

// Puts one together and runs `work(keep)`, which ends its sessions, to the end.
void run_to_end(const Options& options, std::function<async::awaitable<void>(Keep&)> work);

}  // namespace app
