#include "transport/http/request_parser.hpp"

#include <algorithm>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>

namespace transport::http {

namespace asio = boost::asio;
namespace http = boost::beast::http;

namespace {

constexpr std::size_t kLongestLine = 8 << 10;  // the first one; a line of it is a target
constexpr std::size_t kHeaders = 100;
constexpr std::size_t kLastChunk = 5;  // "0\r\n\r\n": with less no chunked body ends

// RFC 9110, section 5.6.2: what a method and a header's name consist of.
bool is_token_char(char c) {
  bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  return alphanumeric || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool is_visible(char c) { return c > 0x20 && c < 0x7f; }

}  // namespace

struct RequestParser::Beast {
  http::request_parser<http::buffer_body> parser;
};

RequestParser::RequestParser(std::size_t header_bytes)
    : header_bytes_(header_bytes), beast_(std::make_unique<Beast>()) {
  beast_->parser.header_limit(static_cast<std::uint32_t>(header_bytes));
  beast_->parser.body_limit(boost::none);  // who reads it knows how much may be
}

RequestParser::~RequestParser() = default;

RequestParser::State RequestParser::refuse(int status, std::string why) {
  status_ = status;
  why_ = std::move(why);
  return State::bad;
}

RequestParser::State RequestParser::head(std::string& in, Request& request) {
  // An empty line or two before a request is tolerated (RFC 9112, section 2.2).
  for (; line_start_ == 0 && in.starts_with("\r\n"); scanned_ = 0) in.erase(0, 2);
  if (!in.empty() && in[0] != '\r' && !is_token_char(in[0]))
    return refuse(400, "This is not HTTP/1.1.");
  for (std::size_t lf; (lf = in.find('\n', scanned_)) != in.npos; scanned_ = line_start_) {
    if (lf == 0 || in[lf - 1] != '\r') return refuse(400, "A line ends in a bare line feed.");
    bool first = line_start_ == 0;
    bool empty = lf - 1 == line_start_;
    char begin = in[line_start_];
    line_start_ = lf + 1;
    if (first && lf > kLongestLine) return refuse(414, "The request's target is too long.");
    if (line_start_ > header_bytes_) return refuse(431, "The headers are too long.");
    if (!first && empty) return parse(in, line_start_, request);
    if (!first && (begin == ' ' || begin == '\t')) return refuse(400, "A header is folded.");
    if (++lines_ > kHeaders + 1) return refuse(431, "There are too many headers.");
  }
  scanned_ = in.size();
  if (line_start_ == 0 && in.size() > kLongestLine)
    return refuse(414, "The request's target is too long.");
  if (in.size() >= header_bytes_) return refuse(431, "The headers are too long.");
  return State::more;
}

RequestParser::State RequestParser::parse(std::string& in, std::size_t size, Request& request) {
  auto& parser = beast_->parser;
  boost::system::error_code failed;
  parser.put(asio::buffer(in.data(), size), failed);
  if (failed == http::error::bad_version) return refuse(505, "Only HTTP/1.1 and 1.0 are spoken.");
  if (failed || !parser.is_header_done())
    return refuse(400, "The request's head is malformed: " + failed.message() + ".");
  in.erase(0, size);
  const auto& message = parser.get();
  request.method = std::string(message.method_string());
  for (const auto& field : message)
    request.headers.emplace(std::string(field.name_string()), std::string(field.value()));
  if (check_framing() == State::bad) return State::bad;
  return read_target(request, std::string(message.target()));
}

// RFC 9112, section 6.3. Where it lets a server choose between repairing and refusing, refuse.
RequestParser::State RequestParser::check_framing() {
  const auto& message = beast_->parser.get();
  auto lengths = message.count(http::field::content_length);
  auto codings = message.count(http::field::transfer_encoding);
  if (lengths + codings > 1) return refuse(400, "The request's length is given twice.");
  auto value = message[http::field::content_length];
  std::string_view length(value.data(), value.size());
  if (lengths == 1 && (length.empty() || length.find_first_not_of("0123456789") != length.npos))
    return refuse(400, "The request's Content-Length is not a number.");
  if (codings == 1) {
    if (message.version() < 11) return refuse(400, "HTTP/1.0 knows no Transfer-Encoding.");
    if (!boost::beast::iequals(message[http::field::transfer_encoding], "chunked"))
      return refuse(501, "The only Transfer-Encoding known is chunked.");
  }
  if (message.count(http::field::expect) == 0 || message.version() < 11) return State::done;
  if (!boost::beast::iequals(message[http::field::expect], "100-continue"))
    return refuse(417, "The only expectation known is 100-continue.");
  expects_continue_ = true;
  return State::done;
}

RequestParser::State RequestParser::read_target(Request& request, std::string target) {
  if (!std::all_of(target.begin(), target.end(), is_visible))
    return refuse(400, "The request's target has characters that belong percent-encoded.");
  // The absolute form must be accepted (RFC 9112, section 3.2.2); its authority is the Host then,
  // and differing ones are not worth guessing.
  if (boost::beast::iequals(target.substr(0, 7), "http://")) {
    std::size_t path = std::min(target.find_first_of("/?", 7), target.size());
    const std::string* host = request.header("Host");
    if (!host || *host != target.substr(7, path - 7))
      return refuse(400, "The request's target and its Host differ.");
    target.erase(0, path);
    if (!target.starts_with('/')) target.insert(0, "/");
  }
  if (!target.starts_with('/')) return refuse(400, "The request's target is not a path.");
  std::size_t question = target.find('?');
  request.path = target.substr(0, question);
  request.query = question == target.npos ? "" : target.substr(question + 1);
  return State::done;
}

RequestParser::State RequestParser::body(std::string& in, std::span<char> into, std::size_t& size) {
  auto& parser = beast_->parser;
  auto& body = parser.get().body();
  body.data = into.data();
  body.size = into.size();
  body.more = true;
  boost::system::error_code failed;
  std::size_t taken = 0, besides = 0;
  // Beast asserts, wrongly, that it is never given less of a last chunk (boostorg/beast#2861).
  std::size_t least = parser.chunked() ? kLastChunk : 1;
  // A put() takes one part of a chunked body at a time: a chunk's head, a piece of it, the trailer.
  while (!parser.is_done() && body.size > 0 && in.size() - taken >= least && !failed) {
    std::size_t room = body.size;
    std::size_t used = parser.put(asio::buffer(in.data() + taken, in.size() - taken), failed);
    taken += used;
    besides = std::max(besides, used - (room - body.size));
    if (used == 0) break;
  }
  size = into.size() - body.size;
  in.erase(0, taken);
  body.data = nullptr;
  bool waits = !failed || failed == http::error::need_buffer || failed == http::error::need_more;
  if (!waits) return refuse(400, "The request's body is malformed: " + failed.message() + ".");
  // Of what is not the body itself (a chunk's extensions, trailers) no more than of headers.
  if (size == 0 && !parser.is_done()) besides = std::max(besides, in.size());
  if (besides >= header_bytes_) return refuse(400, "A chunk's head is too long.");
  return parser.is_done() ? State::done : State::more;
}

bool RequestParser::body_done() const { return beast_->parser.is_done(); }

std::optional<std::uint64_t> RequestParser::content_length() const {
  auto length = beast_->parser.content_length();
  return length ? std::optional<std::uint64_t>(*length) : std::nullopt;
}

bool RequestParser::http_1_0() const { return beast_->parser.get().version() < 11; }

bool RequestParser::keep_alive() const { return !http_1_0() && beast_->parser.get().keep_alive(); }

}  // namespace transport::http
