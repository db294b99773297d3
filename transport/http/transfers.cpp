#include "transport/http/transfers.hpp"

#include <algorithm>
#include <boost/system/system_error.hpp>

#include "transport/http/file_headers.hpp"

namespace transport::http {

namespace {

constexpr std::size_t kChunk = 128 << 10;

// How many run; counted by those that do.
struct Running {
  std::size_t count = 0;
};

class Slot {
 public:
  Slot(Running& running, std::size_t at_once) : running_(running) {
    if (running_.count >= at_once)
      throw TransferError(503, "Too many files are transferred at once; try again in a moment.");
    ++running_.count;
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;
  ~Slot() { --running_.count; }

 private:
  Running& running_;
};

struct Service {
  Transfers& transfers;
  std::size_t at_once;
  Running running;
};

std::string ticket_of(const Request& request) { return request.path.substr(kFilesPath.size()); }

Response text(int status, const std::string& what) {
  Response response = plain(status, what);
  response.headers.emplace_back("X-Content-Type-Options", "nosniff");
  response.headers.emplace_back("Cache-Control", "no-store");
  if (status == 503) response.headers.emplace_back("Retry-After", "2");
  return response;
}

Response refusal(const TransferError& failure, const char* allowed) {
  Response response = text(failure.status, failure.what());
  if (failure.status == 405) response.headers.emplace_back("Allow", allowed);
  return response;
}

// ---- PUT

// What a PUT may say of its body that would change what is stored (RFC 9110, 8.4 and 14.4).
void refuse_partial_or_encoded(const Request& request) {
  if (request.header("Content-Range"))
    throw TransferError(400, "Content-Range: send the whole file in one PUT. Nothing was stored.");
  const std::string* encoding = request.header("Content-Encoding");
  if (encoding && *encoding != "identity")
    throw TransferError(415, "Content-Encoding: send the bytes as they are. Nothing was stored.");
}

// Fills the buffer, if so much comes; what arrives in small pieces is written in large ones.
awaitable<std::size_t> fill(Exchange& exchange, std::vector<char>& buffer) {
  std::size_t size = 0;
  while (size < buffer.size()) {
    std::span<char> rest(buffer.data() + size, buffer.size() - size);
    std::size_t count = co_await exchange.read(rest);
    if (count == 0) break;
    size += count;
  }
  co_return size;
}

awaitable<std::string> receive(Service& service, Exchange& exchange) {
  Slot slot(service.running, service.at_once);
  refuse_partial_or_encoded(exchange.request());
  auto size = exchange.request().content_length();
  std::string ticket = ticket_of(exchange.request());
  auto upload = co_await service.transfers.upload(std::move(ticket), size);
  std::vector<char> buffer(kChunk);
  for (;;) {
    std::size_t count = co_await fill(exchange, buffer);
    if (count == 0) break;
    std::string_view part(buffer.data(), count);
    co_await upload->write(part);
  }
  co_return co_await upload->finish();
}

awaitable<void> put(Service& service, Exchange& exchange) {
  Response response;
  try {
    std::string stored = co_await receive(service, exchange);
    response = text(201, stored);
  } catch (const TransferError& failure) {
    response = refusal(failure, "GET, HEAD");
  } catch (const boost::system::system_error&) {
    response = text(exchange.body_failure(),
                    "The file did not arrive whole. Nothing was stored; the ticket is still good.");
  }
  co_await exchange.reply(std::move(response));
}

// ---- GET, HEAD

// The validator is strong: If-Range needs one (RFC 9110, section 13.1.5).
std::string entity_tag(const Download& download) { return "\"" + download.version() + "\""; }

// The range to send, if one was asked for and the client's copy is of the same file.
std::optional<ByteRange> range_of(const Request& request, const Download& download) {
  const std::string* range = request.header("Range");
  if (!range || request.method != "GET") return std::nullopt;
  const std::string* condition = request.header("If-Range");
  if (condition && *condition != entity_tag(download)) return std::nullopt;
  return byte_range(*range, download.size());
}

Response no_such_range(std::uint64_t size) {
  Response response = text(416, "The file has " + std::to_string(size) + " bytes.");
  response.headers.emplace_back("Content-Range", "bytes */" + std::to_string(size));
  return response;
}

// Whatever code in a sandbox has made, a browser saves it and runs nothing of it.
Response head_of(const Download& download, const std::optional<ByteRange>& range) {
  std::string all = std::to_string(download.size());
  Response head;
  head.headers = {{"Content-Type", std::string(inert_type(download.name()))},
                  {"Content-Length", range ? std::to_string(range->size) : all},
                  {"Content-Disposition", attachment(download.name())},
                  {"Accept-Ranges", "bytes"},
                  {"ETag", entity_tag(download)},
                  {"X-Content-Type-Options", "nosniff"},
                  {"Content-Security-Policy", "sandbox; default-src 'none'"},
                  {"Cross-Origin-Resource-Policy", "same-origin"},
                  {"Referrer-Policy", "no-referrer"},
                  {"Cache-Control", "private, no-store"}};
  if (!range) return head;
  head.status = 206;
  std::uint64_t last = range->offset + range->size - 1;
  head.headers.emplace_back("Content-Range", "bytes " + std::to_string(range->offset) + "-" +
                                                 std::to_string(last) + "/" + all);
  return head;
}

// Stops where the file was cut short meanwhile: the body then lacks what its length promised, and
// the client knows that it has not all.
awaitable<void> send(Download& download, ByteRange range, Exchange& exchange) {
  while (range.size > 0) {
    std::size_t wanted = std::min<std::uint64_t>(range.size, kChunk);
    std::string part = co_await download.read(range.offset, wanted);
    if (part.empty()) co_return;
    bool taken = co_await exchange.write(part);
    if (!taken) co_return;
    range.offset += part.size();
    range.size -= part.size();
  }
}

awaitable<void> deliver(Download& download, Exchange& exchange) {
  const Request& request = exchange.request();
  auto range = range_of(request, download);
  if (range && range->size == 0) {
    Response nothing = no_such_range(download.size());
    co_await exchange.reply(std::move(nothing));
    co_return;
  }
  Response head = head_of(download, range);
  co_await exchange.begin(std::move(head));
  ByteRange whole{0, download.size()};
  ByteRange wanted = range.value_or(whole);
  try {
    if (request.method == "GET") co_await send(download, wanted, exchange);
  } catch (const TransferError&) {  // too late to say so, but by the missing bytes
  }
  co_await exchange.end();
}

awaitable<void> get(Service& service, Exchange& exchange) {
  std::optional<Slot> slot;
  std::unique_ptr<Download> download;
  Response failed;
  try {
    slot.emplace(service.running, service.at_once);
    std::string ticket = ticket_of(exchange.request());
    download = co_await service.transfers.download(std::move(ticket));
  } catch (const TransferError& failure) {
    failed = refusal(failure, "PUT");
  }
  if (download)
    co_await deliver(*download, exchange);
  else
    co_await exchange.reply(std::move(failed));
}

}  // namespace

void mount(Router& router, Transfers& transfers, std::size_t at_once) {
  auto service = std::make_shared<Service>(Service{transfers, at_once, {}});
  std::string path(kFilesPath);
  auto bring = [service](Exchange& exchange) { return put(*service, exchange); };
  auto fetch = [service](Exchange& exchange) { return get(*service, exchange); };
  router.add("PUT", path, bring, true);
  router.add("GET", path, fetch, true);
  router.add("HEAD", path, fetch, true);
}

}  // namespace transport::http
