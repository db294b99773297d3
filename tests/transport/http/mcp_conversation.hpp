#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "async/task_group.hpp"
#include "tests/support/fixture_tools.hpp"
#include "transport/http/mcp_over_http.hpp"

// One request and what came of it, without a network.
class FakeExchange final : public transport::http::Exchange {
 public:
  FakeExchange(boost::asio::any_io_executor executor, transport::http::Request request,
               std::string body)
      : request_(std::move(request)), body_(std::move(body)), changed_(executor) {}

  const transport::http::Request& request() const override { return request_; }
  transport::http::Request& request() override { return request_; }
  async::awaitable<std::optional<std::string>> body(std::size_t limit) override {
    if (body_.size() > limit) co_return std::nullopt;
    co_return body_;
  }
  async::awaitable<std::size_t> read(std::span<char>) override { co_return 0; }
  async::awaitable<void> reply(transport::http::Response response) override {
    head = std::move(response);
    text = head.body;
    over = true;
    co_return;
  }
  async::awaitable<void> begin(transport::http::Response response) override {
    head = std::move(response);
    text = head.body;
    streams = true;
    co_return;
  }
  async::awaitable<bool> write(std::string_view part) override {
    while (reads_nothing && !gone_) co_await changed_.wait();
    if (gone_) co_return false;
    text += part;
    co_return true;
  }
  async::awaitable<void> end() override {
    over = true;
    co_return;
  }
  async::awaitable<void> gone() override {
    while (!gone_) co_await changed_.wait();
  }
  bool is_gone() const override { return gone_; }

  // The client closes the connection.
  void leave() {
    gone_ = true;
    changed_.notify();
  }
  std::string header(std::string_view name) const {
    for (const auto& [key, value] : head.headers)
      if (key == name) return value;
    return "";
  }
  int status() const { return head.status; }
  bool says(std::string_view what) const { return text.find(what) != std::string::npos; }
  // The value of the last line that begins with "id: ".
  std::string last_event_id() const {
    std::size_t at = text.rfind("id: ");
    if (at == std::string::npos) return "";
    return text.substr(at + 4, text.find('\n', at) - at - 4);
  }

  transport::http::Response head{0, {}, {}};
  std::string text;
  bool streams = false;
  bool over = false;     // the response has ended
  bool handled = false;  // the handler has returned
  bool reads_nothing = false;

 private:
  transport::http::Request request_;
  std::string body_;
  async::Changed changed_;
  bool gone_ = false;
};

// Everything behind the router, and clients that talk to it; runs while they wait.
class McpConversation {
 public:
  using Exchange = std::shared_ptr<FakeExchange>;
  using Headers = std::vector<std::pair<std::string, std::string>>;
  using Limit = std::chrono::milliseconds;

  static transport::http::McpLimits quick() {
    transport::http::McpLimits limits;
    limits.json_wait = Limit(50);
    limits.comment_interval = Limit(60);
    return limits;
  }

  explicit McpConversation(transport::http::McpLimits limits = quick(),
                           std::filesystem::path directory = {})
      : mcp_(io_.get_executor(), server_, pool_, std::move(directory), limits),
        running_(io_.get_executor()),
        tasks_(io_.get_executor()) {
    mcp_.mount(router_);
    running_.spawn(mcp_.run());
  }

  ~McpConversation() {
    for (const Exchange& exchange : exchanges_) exchange->leave();
    end(tasks_);
    end(running_);
  }

  // Starts a request, and lets it run until the response has ended or begun to stream.
  Exchange send(std::string method, std::string target, Headers headers, std::string body = "",
                std::string principal = "anna") {
    Exchange exchange = start(std::move(method), std::move(target), std::move(headers),
                              std::move(body), std::move(principal));
    run_until([&] { return exchange->over || exchange->streams || exchange->handled; });
    return exchange;
  }

  // The same without waiting.
  Exchange start(std::string method, std::string target, Headers headers, std::string body = "",
                 std::string principal = "anna") {
    transport::http::Request request;
    request.method = std::move(method);
    request.path = target.substr(0, target.find('?'));
    if (request.path.size() < target.size()) request.query = target.substr(request.path.size() + 1);
    for (auto& [name, value] : headers) request.headers.emplace(name, value);
    if (!body.empty() && !request.header("Content-Type"))
      request.headers.emplace("Content-Type", "application/json");
    request.principal = std::move(principal);
    auto exchange =
        std::make_shared<FakeExchange>(io_.get_executor(), std::move(request), std::move(body));
    exchanges_.push_back(exchange);
    tasks_.spawn(handle(router_, exchange));
    return exchange;
  }

  Exchange post(Headers headers, std::string body, std::string principal = "anna") {
    return send("POST", "/mcp", std::move(headers), std::move(body), std::move(principal));
  }

  // Initializes a session; its id.
  std::string initialize(std::string revision = "2025-11-25", std::string principal = "anna",
                         std::string capabilities = "{}") {
    Exchange exchange = post({}, initialize_message(revision, capabilities), principal);
    return exchange->header("Mcp-Session-Id");
  }

  static std::string initialize_message(const std::string& revision = "2025-11-25",
                                        const std::string& capabilities = "{}") {
    return R"({"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":")" +
           revision + R"(","capabilities":)" + capabilities +
           R"(,"clientInfo":{"name":"c","version":"1"}}})";
  }

  template <class Condition>
  bool run_until(Condition holds, Limit limit = Limit(30000)) {
    auto deadline = std::chrono::steady_clock::now() + limit;
    while (!holds()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      io_.restart();
      io_.run_one_for(Limit(5));
    }
    return true;
  }
  bool until_over(const Exchange& exchange) {
    return run_until([&] { return exchange->over && exchange->handled; });
  }
  bool until_says(const Exchange& exchange, std::string what) {
    return run_until([&] { return exchange->says(what); });
  }
  void run_for(Limit time) {
    run_until([] { return false; }, time);
  }

  transport::http::McpOverHttp& mcp() { return mcp_; }

 private:
  static async::awaitable<void> handle(transport::http::Router& router, Exchange exchange) {
    co_await router.handle(*exchange);
    exchange->handled = true;
  }

  // Cancels on the loop: only there does a cancellation take effect before the task can end.
  void end(async::TaskGroup& tasks) {
    boost::asio::post(io_, [&tasks] { tasks.cancel(); });
    run_until([&tasks] { return tasks.size() == 0; });
  }

  boost::asio::io_context io_{1};
  boost::asio::thread_pool pool_{1};
  mcp::Server server_ = fixture_server();
  transport::http::McpOverHttp mcp_;
  transport::http::Router router_;
  async::TaskGroup running_;
  async::TaskGroup tasks_;
  std::vector<Exchange> exchanges_;
};

inline std::string request(int id, const std::string& method, const std::string& params = "{}") {
  return R"({"jsonrpc":"2.0","id":)" + std::to_string(id) + R"(,"method":")" + method +
         R"(","params":)" + params + "}";
}

inline std::string tool_call(int id, const std::string& tool, const std::string& arguments,
                             const std::string& meta = "{}") {
  return request(
      id, "tools/call",
      R"({"name":")" + tool + R"(","arguments":)" + arguments + R"(,"_meta":)" + meta + "}");
}

inline const std::string kModernMeta = R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
                                       R"("io.modelcontextprotocol/clientCapabilities":{}})";
inline const std::string kModernMetaWithProgress =
    R"({"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
    R"("io.modelcontextprotocol/clientCapabilities":{},"progressToken":"t"})";
