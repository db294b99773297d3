#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/pandastack/client.hpp"
#include "tests/sandbox/pandastack/scripted_server.hpp"

namespace sandbox::pandastack {

using namespace std::chrono_literals;

inline constexpr const char* kKey = "pds_0123456789abcdef0123456789abcdef";
inline constexpr const char* kSandbox =
    R"({"id":"s1","template":"code-interpreter","status":"running"})";
inline const std::string kWarmUp =
    reply(500, R"({"error":"ssh: dial tcp 10.200.0.6:22: connect: connection refused"})");

inline Settings settings_for(const ScriptedServer& server) {
  Settings settings;
  settings.base = server.url("/v1");
  settings.key = kKey;
  settings.key_from = "PANDASTACK_API_KEY";
  settings.warm_up = 30s;
  return settings;
}

inline Patience impatient() {
  Patience patience;
  patience.not_found = 1ms;
  patience.warm_up_first = 10ms;
  patience.warm_up_most = 20ms;
  patience.unit = 1ms;
  return patience;
}

// A client of a server with this script.
struct Scene {
  explicit Scene(std::vector<std::string> script) : Scene(replies(std::move(script))) {}
  explicit Scene(ScriptedServer::Handler handler)
      : server(std::move(handler)),
        client(std::make_unique<Client>(loop.io.get_executor(), settings_for(server), HttpOptions(),
                                        impatient())) {}

  template <class T>
  T run(awaitable<T> work) {
    return loop.run(std::move(work));
  }
  template <class T>
  std::optional<Error> failure_of(awaitable<T> work) {
    try {
      loop.run(std::move(work));
    } catch (const Error& error) {
      return error;
    }
    return std::nullopt;
  }

  ScriptedServer server;
  Loop loop;
  std::unique_ptr<Client> client;
};

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

// A call whose result does not matter.
using AnyCall = std::function<awaitable<void>(Client&)>;

template <class T>
awaitable<void> ignoring(awaitable<T> call) {
  co_await std::move(call);
}

inline ProxyRequest proxy_request() {
  ProxyRequest request;
  request.port = 9000;
  request.target = "/exchange?after=3";
  request.headers = {{"X-Pykeep-Secret", "s"}, {"Content-Type", "application/octet-stream"}};
  request.body = std::string("\0\1\2", 3);
  return request;
}

}  // namespace sandbox::pandastack
