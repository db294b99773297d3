#pragma once

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>
#include <boost/json.hpp>
#include <string>
#include <vector>

#include "async/task_group.hpp"
#include "mcp/server.hpp"
#include "schemas/codec.hpp"
#include "tests/mcp/fake_tools.hpp"

// As the transports parse.
inline json::value parse_message(std::string_view text, boost::system::error_code& malformed) {
  json::parse_options options;
  options.max_depth = 64;
  return json::parse(text, malformed, {}, options);
}

// Records what would have been written to the client.
class FakeOutbox final : public mcp::Outbox {
 public:
  mcp::awaitable<void> send(json::value message) override {
    if (slow) co_await async::sleep_for(std::chrono::minutes(10));
    messages.push_back(std::move(message));
    co_return;
  }
  bool offer(json::object message) override {
    if (slow) return false;
    messages.emplace_back(std::move(message));
    return true;
  }
  bool carries_requests() const override { return reaches_client; }

  std::vector<json::value> messages;
  bool slow = false;  // the client does not read: offers are lost, sends wait
  bool reaches_client = true;
};

class FakeResources final : public mcp::Resources {
 public:
  std::vector<mcp::ResourceTemplate> templates() const override {
    mcp::ResourceTemplate files;
    files.uriTemplate = "test://{name}";
    files.name = "files";
    files.title = "Files";
    return {files};
  }
  mcp::awaitable<mcp::ReadResourceResult> read(mcp::Call&, std::string uri) override {
    if (uri == "test://broken") throw std::runtime_error("disk on fire");
    if (uri != "test://here") throw mcp::ResourceNotFound(uri);
    mcp::ResourceContents contents;
    contents.uri = uri;
    contents.text = "hello";
    mcp::ReadResourceResult result;
    result.contents.push_back(std::move(contents));
    co_return result;
  }
};

// A server with the fake tools, and one client that talks to it over one connection.
class Conversation {
 public:
  // `more` is what the server offers besides the fake tools and resources.
  explicit Conversation(mcp::Offer more = {})
      : requests_(io_.get_executor()),
        standing_(io_.get_executor()),
        server({"pykeep", "Pykeep", "0.1"}, "Read me.", completed(std::move(more))) {}
  ~Conversation() {
    requests_.cancel();
    standing_.cancel();
    run();
    settle();
  }

  // The transport has a way for what belongs to no request, from now on; or no longer.
  void open_standing() {
    standing_.spawn(server.announce(peer, out));
    settle();
  }
  void close_standing() {
    standing_.cancel();
    settle();
  }

  // Starts serving a message; returns once nothing more happens without another one or a timer.
  void start(std::string_view text) { start_as(peer, text); }
  void start_as(mcp::Peer& sender, std::string_view text) {
    boost::system::error_code malformed;
    requests_.spawn(server.handle(parse_message(text, malformed), sender, out));
    REQUIRE_FALSE(malformed);
    settle();
  }
  void settle() {
    io_.restart();
    io_.poll();
  }
  // Runs until every request has been served; false if one still is after `limit`.
  bool run(std::chrono::milliseconds limit = std::chrono::milliseconds(30000)) {
    auto end = std::chrono::steady_clock::now() + limit;
    while (requests_.size() > 0 && std::chrono::steady_clock::now() < end) {
      io_.restart();
      io_.run_one_until(end);
    }
    return requests_.size() == 0;
  }
  // The transport gives up, as at the end of input.
  void shut_down() { requests_.cancel(); }
  std::size_t serving() const { return requests_.size(); }

  // What was sent since the last time, one JSON text a message.
  std::vector<std::string> sent() {
    std::vector<std::string> texts;
    for (const json::value& message : out.messages) texts.push_back(json::serialize(message));
    out.messages.clear();
    return texts;
  }
  // Serves a message to its end and returns the one answer to it.
  json::value ask(std::string_view text) {
    start(text);
    REQUIRE(run());
    REQUIRE(out.messages.size() == 1);
    json::value answer = std::move(out.messages.front());
    out.messages.clear();
    return answer;
  }
  // The result of a request with these params; the error, if that is the answer.
  json::value result(std::string_view method, std::string_view params = "{}") {
    json::object message;
    message["jsonrpc"] = "2.0";
    message["id"] = 1;
    message["method"] = method;
    boost::system::error_code malformed;
    message["params"] = parse_message(params, malformed);
    REQUIRE_FALSE(malformed);
    json::object answer = ask(json::serialize(message)).as_object();
    return answer.contains("result") ? answer["result"] : answer["error"];
  }

  // The handshake of a legacy client.
  json::value initialize(std::string_view revision, std::string_view capabilities = "{}") {
    json::object params;
    params["protocolVersion"] = revision;
    params["capabilities"] = json::parse(capabilities);
    params["clientInfo"] = json::parse(R"({"name":"test","version":"1"})");
    return result("initialize", json::serialize(params));
  }

 private:
  mcp::Offer completed(mcp::Offer offer) {
    for (mcp::Tool& tool : tools.all()) offer.tools.push_back(std::move(tool));
    offer.resources = &resources;
    return offer;
  }

  boost::asio::io_context io_;
  async::TaskGroup requests_;
  async::TaskGroup standing_;

 public:
  FakeTools tools;
  FakeResources resources;
  mcp::Server server;
  mcp::Peer peer;
  FakeOutbox out;
};

// Params of a modern request: `fields` is what comes besides _meta, `capabilities` the client's,
// `more_meta` further members of _meta.
inline std::string modern(std::string fields = "", std::string capabilities = "{}",
                          std::string more_meta = "") {
  if (!fields.empty()) fields = "," + fields;
  if (!more_meta.empty()) more_meta = "," + more_meta;
  return R"({"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",)"
         R"("io.modelcontextprotocol/clientCapabilities":)" +
         capabilities + more_meta + "}" + fields + "}";
}

inline std::string text_of(const json::value& tool_result) {
  return std::string(tool_result.at("content").at(0).at("text").as_string());
}
