#include "transport/http/rpc_refusal.hpp"

#include "mcp/reply.hpp"

namespace transport::http {

Response refusal(int status, mcp::ErrorCode code, std::string_view text, boost::json::value data,
                 const boost::json::value& id) {
  Response response;
  response.status = status;
  response.headers.emplace_back("Content-Type", "application/json");
  if (status == 429 || status == 503) response.headers.emplace_back("Retry-After", "1");
  response.body = boost::json::serialize(mcp::error_reply(id, code, text, std::move(data)));
  return response;
}

awaitable<void> refuse_method(Exchange& exchange, std::string allowed) {
  Response refused = refusal(405, kBadRequest, "This path serves " + allowed);
  refused.headers.emplace_back("Allow", allowed);
  co_await exchange.reply(std::move(refused));
}

Response accepted_response() {
  Response response;
  response.status = 202;
  return response;
}

int legacy_status(std::int64_t error) {
  using enum mcp::ErrorCode;
  bool malformed =
      error == static_cast<int>(parse_error) || error == static_cast<int>(invalid_request);
  return malformed ? 400 : 200;
}

int modern_status(std::int64_t error) {
  using enum mcp::ErrorCode;
  switch (static_cast<mcp::ErrorCode>(error)) {
    case method_not_found:
      return 404;
    case parse_error:
    case invalid_request:
    case header_mismatch:
    case missing_client_capability:
    case unsupported_protocol_version:
      return 400;
    default:
      return 200;
  }
}

}  // namespace transport::http
