#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "async/task_group.hpp"
#include "tests/fuzz/check.hpp"
#include "tests/support/fixture_tools.hpp"
#include "transport/http/mcp_over_http.hpp"

// One request and its response, without a network. Checks that there is one, and its form.
class FuzzedExchange final : public transport::http::Exchange {
 public:
  FuzzedExchange(boost::asio::any_io_executor executor, transport::http::Request request,
                 std::string body)
      : request_(std::move(request)), body_(std::move(body)), changed_(executor) {}

  const transport::http::Request& request() const override { return request_; }
  transport::http::Request& request() override { return request_; }
  async::awaitable<std::optional<std::string>> body(std::size_t limit) override;
  async::awaitable<std::size_t> read(std::span<char>) override { co_return 0; }
  async::awaitable<void> reply(transport::http::Response response) override;
  async::awaitable<void> begin(transport::http::Response response) override;
  async::awaitable<bool> write(std::string_view part) override;
  async::awaitable<void> end() override;
  async::awaitable<void> gone() override;
  bool is_gone() const override { return gone_; }

  void leave();        // the client closes the connection
  void set_handled();  // the handler has returned
  std::string text() const { return text_; }
  const std::string* header(std::string_view name) const;

 private:
  enum class Stage { none, streaming, over };
  void check_head() const;
  void check_events() const;

  transport::http::Request request_;
  std::string body_;
  async::Changed changed_;
  transport::http::Response head_;
  std::string text_;
  Stage stage_ = Stage::none;
  bool gone_ = false;
};

// MCP over HTTP with the fixture's tools and small limits, and its clients. Time stands still:
// everything runs until only a timer could go on.
class FuzzedConversation {
 public:
  // `streams`: no answer is soon enough to be one JSON body.
  explicit FuzzedConversation(bool streams);
  ~FuzzedConversation();

  void send(transport::http::Request request, std::string body);
  void leave();  // all clients close their connections

  // What the client was told last: to be sent along in further requests.
  std::string session, event, messages;

 private:
  using Exchange = std::shared_ptr<FuzzedExchange>;
  static async::awaitable<void> handle(transport::http::Router& router, Exchange exchange);
  void settle();
  void learn();

  boost::asio::io_context io_{1};
  boost::asio::thread_pool& pool_;
  mcp::Server server_ = fixture_server();
  transport::http::McpOverHttp mcp_;
  transport::http::Router router_;
  async::TaskGroup running_, tasks_;
  std::vector<Exchange> exchanges_;
};
