// Any bytes as HTTP/1.1, in one piece and in small ones: what is read does not depend on that, and
// nothing gets through that the next reader of a request could take for something else.

#include "transport/http/request_parser.hpp"

#include <algorithm>
#include <vector>

#include "tests/fuzz/check.hpp"

using transport::http::Request;
using transport::http::RequestParser;
using State = RequestParser::State;

namespace {

constexpr std::size_t kHeaderBytes = 1024;
constexpr std::size_t kRequests = 8;

struct Read {
  Request request;
  std::string body;
  State state = State::more;
  bool has_head = false;

  // Without the status of what is refused: of several faults any may be seen first.
  bool operator==(const Read& other) const {
    return state == other.state && has_head == other.has_head && body == other.body &&
           request.method == other.request.method && request.path == other.request.path &&
           request.query == other.request.query && request.headers == other.request.headers;
  }
};

// Reads as a connection does: bytes come in pieces of `piece`, the body goes out in such of `out`.
class Connection {
 public:
  Connection(std::string_view bytes, std::size_t piece, std::size_t out)
      : bytes_(bytes), piece_(piece), out_(out) {}

  std::vector<Read> requests() {
    std::vector<Read> all;
    while (all.size() < kRequests && (all.empty() || all.back().state == State::done)) {
      Read one = next();
      if (one.state == State::more && !one.has_head) break;
      all.push_back(std::move(one));
    }
    return all;
  }

 private:
  bool arrive() {
    std::size_t size = std::min(piece_, bytes_.size());
    in_.append(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return size > 0;
  }

  Read next() {
    RequestParser parser(kHeaderBytes);
    Read read;
    do {
      read.state = parser.head(in_, read.request);
      check(read.state != State::more || in_.size() <= kHeaderBytes, "a head has its limit");
    } while (read.state == State::more && arrive());
    read.has_head = read.state == State::done;
    if (read.has_head) read.state = parser.body_done() ? State::done : body(parser, read);
    if (read.state == State::bad) {
      check(parser.status() >= 400 && parser.status() <= 505, "a refusal has a status");
      check(!parser.why().empty(), "a refusal has a reason");
    }
    return read;
  }

  State body(RequestParser& parser, Read& read) {
    std::string out(out_, '\0');
    for (;;) {
      std::size_t size = 0;
      State state = parser.body(in_, out, size);
      check(size <= out.size(), "no more of a body than there is room for");
      read.body.append(out, 0, size);
      if (state != State::more) return state;
      if (size == 0 && !arrive()) return state;
    }
  }

  std::string_view bytes_;
  std::size_t piece_, out_;
  std::string in_;
};

void check_request(const Request& request) {
  check(!request.method.empty(), "a request has a method");
  check(request.path.starts_with('/'), "a path starts with a slash");
  for (char c : request.path + request.query) check(c > ' ' && c < 0x7f, "a target is printable");
  std::size_t lengths = request.headers.count("Content-Length");
  check(lengths + request.headers.count("Transfer-Encoding") <= 1, "one length a request");
  for (const auto& [name, value] : request.headers) check_header(name, value);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  std::size_t piece = 1 + data[0] % 64, out = 1 + data[1];
  std::string_view bytes = as_text(data + 2, size - 2);
  std::vector<Read> whole = Connection(bytes, bytes.size(), 4096).requests();
  std::vector<Read> pieces = Connection(bytes, piece, out).requests();
  for (const Read& one : whole)
    if (one.has_head) check_request(one.request);
  // Of a body that ends early or is malformed, how much was given out by then is no matter.
  if (!whole.empty() && whole.back().has_head && whole.back().state != State::done &&
      whole.size() == pieces.size())
    whole.back().body = pieces.back().body;
  check(whole == pieces, "a request reads alike in whatever pieces it comes");
  return 0;
}
