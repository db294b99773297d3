// pykeep-conformance: the fixtures of the official conformance suite, served over HTTP by the code
// that pykeep itself serves with. A program for tests; it is not shipped.
//
//   pykeep-conformance --listen 127.0.0.1:PORT     (port 0: any; the address is the first output)

#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <charconv>
#include <csignal>
#include <cstdio>

#include "async/task_group.hpp"
#include "tests/conformance/fixtures.hpp"
#include "transport/http/host_policy.hpp"
#include "transport/http/listener.hpp"
#include "transport/http/mcp_over_http.hpp"
#include "transport/log_sink.hpp"

namespace asio = boost::asio;
namespace http = transport::http;

namespace {

mcp::Server make_server(mcp::Hub& hub, mcp::Resources& resources) {
  mcp::Offer offer;
  offer.tools = conformance::content_tools(hub);
  for (mcp::Tool& tool : conformance::asking_tools()) offer.tools.push_back(std::move(tool));
  offer.prompts = conformance::prompts();
  offer.resources = &resources;
  offer.complete = conformance::complete;
  offer.hub = &hub;
  offer.lists_change = {mcp::List::tools, mcp::List::prompts};
  mcp::Implementation self;
  self.name = "pykeep-conformance";
  self.version = "1";
  return mcp::Server(std::move(self), "Fixtures for tests.", std::move(offer));
}

struct Place {
  std::string address;
  std::uint16_t port = 0;
};

std::optional<Place> parse(std::string_view text) {
  auto colon = text.rfind(':');
  if (colon == text.npos) return std::nullopt;
  Place place;
  place.address = text.substr(0, colon);
  std::string_view port = text.substr(colon + 1);
  auto [end, bad] = std::from_chars(port.begin(), port.end(), place.port);
  if (bad != std::errc() || end != port.end()) return std::nullopt;
  return place;
}

http::Router make_router(const std::string& address, http::McpOverHttp& mcp) {
  http::HostPolicy::Allowed allowed;
  allowed.address = address;
  auto policy = std::make_shared<http::HostPolicy>(std::move(allowed));
  http::Router router;
  router.guard([policy](http::Request& request) { return policy->check_host(request); });
  router.guard([policy](http::Request& request) { return policy->check_origin(request); });
  router.authenticate([](http::Request& request) {
    request.principal = "local";
    return std::optional<http::Response>();
  });
  mcp.mount(router);
  return router;
}

async::awaitable<void> stop_on_signal(http::Listener& listener, http::McpOverHttp& mcp) {
  asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM);
  int signal = co_await signals.async_wait(asio::use_awaitable);
  (void)signal;
  mcp.end_streams();
  std::chrono::seconds grace(1);
  listener.stop(grace);
}

async::awaitable<void> serve(mcp::Server& server, asio::thread_pool& pool, Place place) {
  auto executor = co_await asio::this_coro::executor;
  std::filesystem::path keep_nothing;
  http::McpOverHttp mcp(executor, server, pool, keep_nothing);
  http::Router router = make_router(place.address, mcp);
  auto handle = [&router](http::Exchange& exchange) { return router.handle(exchange); };
  http::Listener listener(executor, place.address, place.port, handle);
  std::printf("http://%s:%u/mcp\n", place.address.c_str(), listener.port());
  std::fflush(stdout);
  async::TaskGroup others(executor);
  others.spawn(mcp.run());
  others.spawn(stop_on_signal(listener, mcp));
  co_await listener.serve();
  others.cancel();
  co_await others.join();
}

}  // namespace

int main(int count, char** arguments) {
  std::signal(SIGPIPE, SIG_IGN);
  auto log = std::make_shared<transport::LogSink>(2);
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("pykeep-conformance", log));
  std::optional<Place> place;
  if (count == 3 && std::string_view(arguments[1]) == "--listen") place = parse(arguments[2]);
  if (!place) {
    std::fprintf(stderr, "usage: pykeep-conformance --listen ADDRESS:PORT\n");
    return 2;
  }
  int code = 0;
  asio::io_context io(1);
  asio::thread_pool pool(1);
  mcp::Hub hub;
  conformance::Resources resources;
  mcp::Server server = make_server(hub, resources);
  async::TaskGroup tasks(io.get_executor(), [&code](std::exception_ptr failure) {
    code = 1;
    try {
      std::rethrow_exception(failure);
    } catch (const std::exception& problem) {
      std::fprintf(stderr, "pykeep-conformance: %s\n", problem.what());
    }
  });
  tasks.spawn(serve(server, pool, std::move(*place)));
  io.run();
  return code;
}
