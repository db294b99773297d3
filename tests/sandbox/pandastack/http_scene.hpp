#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

#include "sandbox/pandastack/http.hpp"
#include "tests/sandbox/pandastack/scripted_server.hpp"

namespace sandbox::pandastack {

using namespace std::chrono_literals;

inline Request ask(const std::string& url, const std::string& method = "GET",
                   std::string body = {}) {
  Request request;
  request.purpose = "could not ask";
  request.url = url;
  request.method = method;
  request.body = std::move(body);
  request.limit = 45s;
  return request;
}

inline Response send(Loop& loop, Http& http, Request request) {
  return loop.run(http.send(std::move(request)));
}

inline std::optional<Error> failure_of(Loop& loop, Http& http, Request request) {
  try {
    send(loop, http, std::move(request));
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

// Lets a test and its server wait for each other.
class Gate {
 public:
  void open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 30s, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

inline awaitable<void> read_on(Answer& answer, std::string& into) {
  while (auto bytes = co_await answer.read()) into += *bytes;
}

}  // namespace sandbox::pandastack
