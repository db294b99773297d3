#include "sandbox/pandastack/transfer.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <new>

#include "sandbox/pandastack/transfers.hpp"

namespace sandbox::pandastack {

namespace {

constexpr std::size_t kMaxHead = 64 << 10;
constexpr long kLongest = 24L * 3600 * 1000;  // a day: libcurl takes no more than an int
constexpr long kChunk = 128 << 10;
// Below the 60 s after which the load balancers of clouds drop a connection that is idle: one that
// they are about to drop must not get a request that cannot be repeated.
constexpr long kMostIdleSeconds = 50;

curl_socket_t open_socket(void*, curlsocktype, curl_sockaddr* address) {
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

Failure failure_of(CURLcode result, bool sent) {
  if (result == CURLE_OPERATION_TIMEDOUT) return Failure::deadline;
  if (!sent) return Failure::no_connection;
  bool not_http = result == CURLE_UNSUPPORTED_PROTOCOL || result == CURLE_WEIRD_SERVER_REPLY;
  return not_http ? Failure::malformed : Failure::cut;
}

// Whether the server may see it twice.
bool is_repeatable(const std::string& method) {
  return method == "GET" || method == "HEAD" || method == "DELETE";
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::string_view(" \t\r\n").find(text.front()) != text.npos)
    text.remove_prefix(1);
  while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != text.npos)
    text.remove_suffix(1);
  return text;
}

CURL* new_easy() {
  CURL* easy = curl().easy_init();
  if (!easy) throw std::bad_alloc();
  return easy;
}

}  // namespace

Transfer::Transfer(const HttpOptions& options, std::shared_ptr<Call> call)
    : call_(std::move(call)), easy_(new_easy()) {
  set_transport(options);
  set_request();
}

Transfer::~Transfer() {
  curl().easy_cleanup(easy_);
  curl().slist_free_all(headers_);
}

Transfer& Transfer::of(CURL* handle) {
  Transfer* self = nullptr;
  curl().easy_getinfo(handle, CURLINFO_PRIVATE, &self);
  return *self;
}

template <class Value>
void Transfer::set(CURLoption option, Value value) {
  curl().easy_setopt(easy_, option, value);
}

void Transfer::set_transport(const HttpOptions& options) {
  set(CURLOPT_PRIVATE, static_cast<void*>(this));
  set(CURLOPT_ERRORBUFFER, error_text_.data());
  set(CURLOPT_NOSIGNAL, 1L);  // no SIGALRM for name resolution
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options.connect_limit.count()));
  set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);  // a proxy's answer to CONNECT is none of ours
  set(CURLOPT_TCP_KEEPALIVE, 1L);
  set(CURLOPT_MAXAGE_CONN, kMostIdleSeconds);
  set(CURLOPT_QUICK_EXIT, 1L);  // do not wait for a name resolution that was given up
  set(CURLOPT_BUFFERSIZE, kChunk);
  set(CURLOPT_OPENSOCKETFUNCTION, &open_socket);
  set(CURLOPT_HEADERFUNCTION, &Transfer::header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(CURLOPT_WRITEFUNCTION, &Transfer::body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(this));
  set(CURLOPT_PREREQFUNCTION, &Transfer::before_request);
  set(CURLOPT_PREREQDATA, static_cast<void*>(this));
  if (!options.ca_file.empty()) set(CURLOPT_CAINFO, options.ca_file.c_str());
}

void Transfer::set_request() {
  const Request& request = call_->request();
  bool sends_body = !request.body.empty() || request.method == "POST" || request.method == "PUT" ||
                    request.method == "PATCH";
  set(CURLOPT_URL, request.url.c_str());
  set(CURLOPT_PATH_AS_IS, 1L);
  if (sends_body) {
    set(CURLOPT_POSTFIELDS, request.body.data());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
  }
  if (request.method == "HEAD") set(CURLOPT_NOBODY, 1L);
  set(CURLOPT_CUSTOMREQUEST, request.method.c_str());
  set(CURLOPT_TIMEOUT_MS, std::clamp(static_cast<long>(request.limit.count()), 1L, kLongest));
  if (request.silence.count() > 0) {
    set(CURLOPT_LOW_SPEED_LIMIT, 1L);
    set(CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.silence.count()));
  }
  add_header("Expect:");        // no "100-continue", which costs a second where nobody answers it
  add_header("Content-Type:");  // not libcurl's idea of a form, unless the request has its own
  for (const auto& [name, value] : request.headers)
    add_header(value.empty() ? name + ";" : name + ": " + value);
  set(CURLOPT_HTTPHEADER, headers_);
}

void Transfer::add_header(const std::string& line) {
  curl_slist* longer = curl().slist_append(headers_, line.c_str());
  if (!longer) throw std::bad_alloc();
  headers_ = longer;
}

std::size_t Transfer::header(char* data, std::size_t, std::size_t size, void* self) noexcept {
  return static_cast<Transfer*>(self)->on_header({data, size});
}

std::size_t Transfer::body(char* data, std::size_t, std::size_t size, void* self) noexcept {
  return static_cast<Transfer*>(self)->on_body({data, size});
}

int Transfer::before_request(void* self, char*, char*, int, int) noexcept {
  return static_cast<Transfer*>(self)->may_send() ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT;
}

// libcurl sends a request again when a kept connection breaks before any byte of an answer,
// although the server may have acted on it (Curl_retry_request).
bool Transfer::may_send() {
  if (sent_ && !is_repeatable(call_->request().method)) {
    end(Failure::cut, "the connection ended before an answer came");
    return false;
  }
  sent_ = true;
  return true;
}

std::size_t Transfer::on_header(std::string_view line) {
  if (head_complete_) return line.size();  // a trailer
  head_size_ += line.size();
  if (head_size_ > kMaxHead) {
    end(Failure::malformed, "the head of the answer is longer than 64 KiB");
    return 0;
  }
  if (line.starts_with("HTTP/")) {
    head_ = Head();  // the one before was an interim answer (1xx)
    return line.size();
  }
  std::string_view text = trimmed(line);
  if (text.empty()) {
    long status = 0;
    curl().easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200) return line.size();
    head_.status = static_cast<int>(status);
    head_complete_ = true;
    arrival_.head = std::move(head_);
    return line.size();
  }
  std::size_t colon = text.find(':');
  if (colon == text.npos) return line.size();
  std::string name(trimmed(text.substr(0, colon)));
  for (char& c : name)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  head_.headers.emplace_back(std::move(name), trimmed(text.substr(colon + 1)));
  return line.size();
}

std::size_t Transfer::on_body(std::string_view bytes) {
  if (ended_) return 0;
  // Refused as a whole; libcurl keeps it, and comes with it again when the pause is over.
  if (unread_ > 0 && unread_ + bytes.size() > kWindow) {
    held_up_ = true;
    return CURL_WRITEFUNC_PAUSE;
  }
  body_size_ += bytes.size();
  if (body_size_ > call_->request().cap) {
    end(Failure::too_large,
        "the answer is longer than " + std::to_string(call_->request().cap) + " bytes");
    return 0;
  }
  unread_ += bytes.size();
  arrival_.bytes += bytes;
  return bytes.size();
}

void Transfer::was_read(std::size_t bytes) {
  unread_ -= std::min(bytes, unread_);
  if (!held_up_ || ended_) return;
  held_up_ = false;
  curl().easy_pause(easy_, CURLPAUSE_CONT);
}

void Transfer::finished(CURLcode result) {
  if (ended_) return;
  ended_ = true;
  if (result == CURLE_OK) {
    arrival_.end = End{.ok = true, .sent = sent_};
    return;
  }
  std::string why = error_text_[0] ? error_text_.data() : curl().easy_strerror(result);
  arrival_.end = End{false, failure_of(result, sent_), sent_, std::move(why)};
}

void Transfer::end(Failure failure, std::string why) {
  if (ended_) return;
  ended_ = true;
  arrival_.end = End{false, failure, sent_, std::move(why)};
}

Arrival Transfer::take_arrival() {
  Arrival out = std::move(arrival_);
  arrival_ = Arrival();
  return out;
}

}  // namespace sandbox::pandastack
