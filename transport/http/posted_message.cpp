#include "transport/http/posted_message.hpp"

#include <algorithm>

#include "transport/http/mcp_headers.hpp"
#include "transport/http/rpc_refusal.hpp"
#include "transport/message_text.hpp"

namespace transport::http {

namespace {

// Reserved for a body that does not say how long it is.
constexpr std::size_t kUnknownLength = std::size_t{1} << 20;

Response too_long(const McpLimits& limits) {
  return refusal(413, mcp::ErrorCode::invalid_request,
                 "The message is longer than " + std::to_string(limits.body_bytes) + " bytes");
}

Response incomplete(int status) {
  return refusal(status, mcp::ErrorCode::invalid_request,
                 "The body did not arrive whole: too slow, or not as its headers say");
}

Response too_busy() {
  return refusal(429, mcp::ErrorCode::internal_error,
                 "Too many requests in hand; send this one again when an earlier one has been "
                 "answered");
}

}  // namespace

awaitable<std::optional<Posted>> read_posted(Exchange& exchange, Loads& loads,
                                             const McpLimits& limits) {
  std::optional<Posted> posted;
  std::optional<Response> refused;
  std::optional<std::string> text;
  const Request& request = exchange.request();
  std::size_t length =
      request.content_length().value_or(std::min(kUnknownLength, limits.body_bytes));
  auto load = loads.of(request.principal);
  auto share = length <= limits.body_bytes ? Load::take(load, length) : std::nullopt;
  if (!has_json_body(request)) {
    refused =
        refusal(415, mcp::ErrorCode::invalid_request,
                "The body is to be one JSON-RPC message, with Content-Type: application/json");
  } else if (length > limits.body_bytes) {
    refused = too_long(limits);
  } else if (!share) {
    refused = too_busy();
  } else {
    text = co_await exchange.body(limits.body_bytes);
    int failure = exchange.body_failure();
    if (!text) refused = failure == 413 ? too_long(limits) : incomplete(failure);
  }
  if (text && text->size() > length) {  // it came in chunks
    share.reset();
    share = Load::take(load, text->size());
    if (!share) refused = too_busy();
  }
  if (!refused) {
    std::size_t bytes = text->size();
    auto message = parse_message(std::move(*text));
    if (message)
      posted.emplace(Posted{std::move(*message), bytes, std::move(*share)});
    else
      refused =
          refusal(400, mcp::ErrorCode::parse_error,
                  "Not a JSON text in UTF-8, nested at most 64 deep, of at most 100,000 values");
  }
  if (refused) co_await exchange.reply(std::move(*refused));
  co_return posted;
}

}  // namespace transport::http
