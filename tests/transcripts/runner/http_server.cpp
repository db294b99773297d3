#include "tests/transcripts/runner/http_server.hpp"

#include <arpa/inet.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <regex>
#include <stdexcept>

namespace transcripts {

namespace json = boost::json;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kStartLimit{60000};
// Two requests in a row shall reach the server in their order, on whatever connections.
constexpr milliseconds kHeadStart{30};
constexpr const char* kClaim = "io.modelcontextprotocol/protocolVersion";

std::string text_at(const json::value& from, std::initializer_list<std::string_view> path) {
  const json::value* at = &from;
  for (std::string_view key : path) {
    const json::object* object = at->if_object();
    at = object ? object->if_contains(key) : nullptr;
    if (!at) return {};
  }
  return at->is_string() ? std::string(at->get_string()) : std::string();
}

std::string member(const json::value& message, std::string_view name) {
  const json::object* object = message.if_object();
  const json::value* value = object ? object->if_contains(name) : nullptr;
  return value ? json::serialize(*value) : std::string();
}

bool is_request(const json::value& message) {
  if (const json::array* batch = message.if_array())
    return std::ranges::any_of(*batch, [](const json::value& one) { return is_request(one); });
  return !member(message, "id").empty() && !member(message, "method").empty();
}

std::string base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    unsigned bits = 0;
    for (std::size_t i = 0; i < 3; ++i)
      bits = bits << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i)
      text += at + i <= bytes.size() ? kDigits[bits >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

// 2026-07-28, Streamable HTTP: what a header cannot hold as it is.
std::string as_header(const std::string& value) {
  bool plain = !value.starts_with("=?") && !value.starts_with(' ') && !value.ends_with(' ');
  for (char c : value) plain = plain && c >= 0x20 && c < 0x7F;
  return plain ? value : "=?base64?" + base64(value) + "?=";
}

}  // namespace

HttpServer::HttpServer(std::vector<std::string> command,
                       const std::vector<std::string>& environment)
    : child_(command, environment, STDERR_FILENO) {
  find_address();
}

HttpServer::~HttpServer() {
  for (Post& post : open_) close(post.fd);
}

void HttpServer::find_address() {
  static const std::regex kServing(R"(serving MCP at http://([0-9.]+):([0-9]+)(/\S+))");
  auto deadline = Clock::now() + kStartLimit;
  std::smatch found;
  while (!std::regex_search(stderr_, found, kServing)) {
    char chunk[4096];
    ssize_t size =
        ready(child_.out(), POLLIN, deadline) ? ::read(child_.out(), chunk, sizeof chunk) : 0;
    if (size <= 0) throw std::runtime_error("the server does not say where it serves:\n" + stderr_);
    stderr_.append(chunk, static_cast<std::size_t>(size));
  }
  host_ = found[1];
  port_ = static_cast<std::uint16_t>(std::stoul(found[2]));
  path_ = found[3];
}

void HttpServer::tell_stderr() {
  char chunk[4096];
  while (ready(child_.out(), POLLIN, Clock::now())) {
    ssize_t size = ::read(child_.out(), chunk, sizeof chunk);
    if (size <= 0) return;
    std::fwrite(chunk, 1, static_cast<std::size_t>(size), stderr);
  }
}

int HttpServer::connect() const {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port_);
  inet_pton(AF_INET, host_.c_str(), &address.sin_addr);
  if (::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  throw std::runtime_error("the server takes no connections");
}

int HttpServer::begin(const std::string& verb, const std::string& headers, const std::string& body,
                      Post post) {
  std::string request = verb + " " + path_ + " HTTP/1.1\r\nHost: " + host_ + ":" +
                        std::to_string(port_) + "\r\nConnection: close\r\n" + headers +
                        "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
  post.fd = connect();
  post.number = ++posts_;
  for (std::size_t sent = 0; sent < request.size();) {
    ssize_t size = write(post.fd, request.data() + sent, request.size() - sent);
    if (size <= 0) break;  // the server has answered before it had read everything
    sent += static_cast<std::size_t>(size);
  }
  open_.push_back(std::move(post));
  return posts_;
}

std::string HttpServer::headers_for(const json::value& message) const {
  std::string headers =
      "Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n";
  std::string claim = text_at(message, {"params", "_meta", kClaim});
  std::string method = text_at(message, {"method"});
  if (!claim.empty()) {
    std::string name = text_at(message, {"params", method == "resources/read" ? "uri" : "name"});
    headers += "MCP-Protocol-Version: " + claim + "\r\nMcp-Method: " + as_header(method) + "\r\n";
    return name.empty() ? headers : headers + "Mcp-Name: " + as_header(name) + "\r\n";
  }
  if (method == "initialize") return headers;
  if (!session_.empty()) headers += "Mcp-Session-Id: " + session_ + "\r\n";
  return revision_.empty() ? headers : headers + "MCP-Protocol-Version: " + revision_ + "\r\n";
}

// A modern client cancels by closing what the answer would come on.
bool HttpServer::cancels(const json::value& message) {
  bool modern = !text_at(message, {"params", "_meta", kClaim}).empty();
  if (!modern || text_at(message, {"method"}) != "notifications/cancelled") return false;
  std::string id = member(message.at("params"), "requestId");
  for (auto post = open_.begin(); post != open_.end(); ++post) {
    if (post->id != id) continue;
    close(post->fd);
    open_.erase(post);
    break;
  }
  return true;
}

void HttpServer::send(const std::string& message, milliseconds limit) {
  boost::system::error_code malformed;
  json::value value = json::parse(message, malformed);
  if (!malformed && cancels(value)) return;
  bool asks = !malformed && is_request(value);
  Post post;
  post.id = asks ? member(value, "id") : "";
  post.is_initialize = text_at(value, {"method"}) == "initialize";
  bool must_end = !asks || post.is_initialize;
  int number = begin("POST", headers_for(value), message, std::move(post));
  bool ended = read_until_ended(number, Clock::now() + (must_end ? limit : kHeadStart));
  if (must_end && !ended) throw std::runtime_error("the server does not answer a POST");
}

std::optional<std::string> HttpServer::receive(milliseconds limit) {
  auto deadline = Clock::now() + limit;
  while (messages_.empty() && !open_.empty() && Clock::now() < deadline) read_some(deadline);
  if (messages_.empty()) return std::nullopt;
  std::string message = std::move(messages_.front());
  messages_.pop_front();
  return message;
}

bool HttpServer::is_open(int number) const {
  return std::ranges::any_of(open_, [=](const Post& post) { return post.number == number; });
}

bool HttpServer::read_until_ended(int number, Clock::time_point deadline) {
  while (is_open(number) && Clock::now() < deadline) read_some(deadline);
  return !is_open(number);
}

void HttpServer::read_some(Clock::time_point deadline) {
  tell_stderr();
  std::vector<pollfd> waiting;
  for (const Post& post : open_) waiting.push_back({post.fd, POLLIN, 0});
  poll(waiting.data(), waiting.size(), milliseconds_until(deadline));
  std::size_t at = 0;
  for (auto post = open_.begin(); post != open_.end(); ++at) {
    if (waiting[at].revents != 0) read(*post);
    if (post->response.complete()) close(post->fd);
    post = post->response.complete() ? open_.erase(post) : std::next(post);
  }
}

void HttpServer::read(Post& post) {
  char chunk[65536];
  ssize_t size = ::read(post.fd, chunk, sizeof chunk);
  if (size <= 0) return post.response.end();
  std::string_view bytes(chunk, static_cast<std::size_t>(size));
  for (std::string& message : post.response.take(bytes)) {
    if (post.is_initialize) settle(post.response, message);
    messages_.push_back(std::move(message));
  }
  const HttpResponse& response = post.response;
  if (!response.complete() || response.status() < 400) return;
  if (!response.header("content-type").starts_with("application/json"))
    throw std::runtime_error("HTTP " + std::to_string(response.status()) + ": " + response.body());
}

// What the handshake has given this conversation.
void HttpServer::settle(const HttpResponse& response, const std::string& answer) {
  boost::system::error_code malformed;
  json::value message = json::parse(answer, malformed);
  std::string revision = malformed ? "" : text_at(message, {"result", "protocolVersion"});
  if (revision.empty()) return;
  revision_ = revision;
  session_ = response.header("mcp-session-id");
}

void HttpServer::leave() {
  if (session_.empty()) return;
  int number = begin("DELETE", "Mcp-Session-Id: " + session_ + "\r\n", "", Post());
  if (!read_until_ended(number, Clock::now() + kStartLimit))
    throw std::runtime_error("the server does not answer a DELETE");
}

std::optional<int> HttpServer::wait(milliseconds limit) {
  child_.signal(SIGTERM);
  auto status = child_.wait(limit);
  tell_stderr();
  return status;
}

}  // namespace transcripts
