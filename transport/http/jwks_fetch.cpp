#include "transport/http/jwks_fetch.hpp"

#include <openssl/ssl.h>
#include <spdlog/spdlog.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <cstdlib>
#include <fstream>
#include <stdexcept>

namespace transport::http {

namespace asio = boost::asio;
namespace beast = boost::beast;
using tcp = asio::ip::tcp;

namespace {

constexpr std::uint32_t kMaxHead = 16 << 10;

// Where distributions keep their certificates. OpenSSL's own default is where Debian's are.
constexpr const char* kBundles[] = {"/etc/ssl/certs/ca-certificates.crt",
                                    "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                                    "/etc/ssl/cert.pem"};

struct Url {
  bool tls = true;
  std::string authority;  // as in the Host header
  std::string host, port;
  std::string target;
};

bool is_loopback_name(const std::string& host) {
  boost::system::error_code malformed;
  auto address = asio::ip::make_address(host, malformed);
  return host == "localhost" || (!malformed && address.is_loopback());
}

Url parse_url(const std::string& text) {
  auto fail = [&text](const char* why) { throw std::runtime_error(text + ": " + why); };
  Url url;
  url.tls = text.starts_with("https://");
  if (!url.tls && !text.starts_with("http://")) fail("expected an https URL");
  if (text.find_first_of("@#\\ \t\r\n") != text.npos)
    fail("a URL without user, fragment or blanks");
  std::size_t start = text.find("://") + 3;
  std::size_t slash = std::min(text.find_first_of("/?", start), text.size());
  url.authority = text.substr(start, slash - start);
  url.target = text.substr(slash);
  if (!url.target.starts_with('/')) url.target.insert(0, "/");
  std::size_t bracket = url.authority.find(']');
  std::size_t colon = url.authority.find(':', bracket == text.npos ? 0 : bracket);
  url.host = url.authority.substr(0, colon);
  url.port = url.tls ? "443" : "80";
  if (colon != text.npos) url.port = url.authority.substr(colon + 1);
  if (url.host.starts_with('[')) url.host = url.host.substr(1, url.host.size() - 2);
  if (url.host.empty() || url.port.empty()) fail("it names no host");
  if (!url.tls && !is_loopback_name(url.host)) fail("http is for this machine only; use https");
  return url;
}

asio::ssl::context client_context() {
  asio::ssl::context context(asio::ssl::context::tls_client);
  context.set_verify_mode(asio::ssl::verify_peer);
  context.set_default_verify_paths();
  if (!std::getenv("SSL_CERT_FILE"))
    for (const char* bundle : kBundles)
      if (SSL_CTX_load_verify_locations(context.native_handle(), bundle, nullptr) == 1) break;
  SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  return context;
}

template <class Stream>
awaitable<std::string> get(Stream& stream, const Url& url, std::size_t max_bytes) {
  beast::http::request<beast::http::empty_body> request(beast::http::verb::get, url.target, 11);
  request.set(beast::http::field::host, url.authority);
  request.set(beast::http::field::accept, "application/json");
  request.set(beast::http::field::user_agent, "pykeep");
  request.set(beast::http::field::connection, "close");
  co_await beast::http::async_write(stream, request, asio::use_awaitable);
  beast::flat_buffer buffer(kMaxHead + max_bytes);
  beast::http::response_parser<beast::http::string_body> parser;
  parser.header_limit(kMaxHead);
  parser.body_limit(max_bytes);
  co_await beast::http::async_read(stream, buffer, parser, asio::use_awaitable);
  if (parser.get().result_int() != 200)
    throw std::runtime_error("it answered " + std::to_string(parser.get().result_int()));
  co_return std::move(parser.get().body());
}

awaitable<std::string> get_over_tls(tcp::socket& socket, const Url& url, std::size_t max_bytes) {
  asio::ssl::context context = client_context();
  asio::ssl::stream<tcp::socket&> stream(socket, context);
  boost::system::error_code malformed;
  asio::ip::make_address(url.host, malformed);
  if (malformed)  // a name: addresses have no server name indication (RFC 6066, section 3)
    SSL_set_tlsext_host_name(stream.native_handle(), url.host.c_str());
  asio::ssl::host_name_verification verification(url.host);
  stream.set_verify_callback(verification);
  co_await stream.async_handshake(asio::ssl::stream_base::client, asio::use_awaitable);
  co_return co_await get(stream, url, max_bytes);
}

// Files are small and local: read on the loop, as at start.
std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("it cannot be opened");
  std::string text(Jwks::kMaxDocument + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

bool is_url(const std::string& where) { return where.find("://") != where.npos; }

}  // namespace

awaitable<std::string> fetch(std::string text, std::size_t max_bytes) {
  Url url = parse_url(text);
  auto executor = co_await asio::this_coro::executor;
  tcp::resolver resolver(executor);
  auto found = co_await resolver.async_resolve(url.host, url.port, asio::use_awaitable);
  if (!url.tls)
    for (const auto& entry : found)
      if (!entry.endpoint().address().is_loopback())
        throw std::runtime_error("http is for this machine only; use https");
  tcp::socket socket(executor);
  co_await asio::async_connect(socket, found, asio::use_awaitable);
  if (url.tls) co_return co_await get_over_tls(socket, url, max_bytes);
  co_return co_await get(socket, url, max_bytes);
}

JwksSource::JwksSource(asio::any_io_executor executor, std::string where, JwksTimes times)
    : where_(std::move(where)), times_(times), turn_(executor) {
  if (is_url(where_)) parse_url(where_);
}

awaitable<std::optional<std::string>> JwksSource::document() {
  if (!is_url(where_)) co_return read_file(where_);
  auto fetching = fetch(where_, Jwks::kMaxDocument);
  co_return co_await async::within(times_.fetch, std::move(fetching));
}

awaitable<bool> JwksSource::refresh() {
  asked_ = std::chrono::steady_clock::now();
  try {
    auto text = co_await document();
    if (!text) throw std::runtime_error("no answer in time");
    keys_ = Jwks(*text);
    spdlog::info("fetched the keys of tokens from {}", where_);
    co_return true;
  } catch (const std::exception& failure) {
    const char* left = keys_.empty() ? "no token can be accepted" : "the keys known before stay";
    spdlog::warn("{}: {}: {}", where_, failure.what(), left);
    co_return false;
  }
}

awaitable<void> JwksSource::look_for(std::string kid) {
  auto turn = co_await turn_.take();
  auto now = std::chrono::steady_clock::now();
  if (keys_.has(kid) || (asked_ && now - *asked_ < times_.retry)) co_return;
  co_await refresh();
}

awaitable<void> JwksSource::keep_current() {
  for (;;) {
    bool fresh = co_await refresh();
    auto pause = fresh ? times_.renew : times_.retry;
    co_await async::sleep_for(pause);
  }
}

}  // namespace transport::http
