#include "transport/http/ladder.hpp"

#include <algorithm>

#include "mcp/envelope.hpp"
#include "mcp/error.hpp"
#include "transport/http/mcp_headers.hpp"
#include "transport/http/rpc_refusal.hpp"

namespace transport::http {

namespace json = boost::json;

namespace {

constexpr std::size_t kMaxBatch = 100;  // as the SDKs have it

Step refused(int status, mcp::ErrorCode code, std::string_view text, json::value data = nullptr,
             const json::value& id = nullptr) {
  Step step;
  step.refusal = refusal(status, code, text, std::move(data), id);
  return step;
}

Step to(Step::To where) {
  Step step;
  step.to = where;
  return step;
}

bool header_names_modern(const Request& request) {
  const std::string* header = request.header(kVersionHeader);
  std::optional<mcp::Revision> known = header ? mcp::parse_revision(*header) : std::nullopt;
  return known && mcp::era_of(*known) == mcp::Era::modern;
}

Step classify_batch(const json::array& batch) {
  using enum mcp::ErrorCode;
  auto modern = [](const json::value& one) {
    return one.is_object() && mcp::claims_modern(one.get_object());
  };
  auto initializes = [](const json::value& one) {
    const json::object* object = one.if_object();
    const json::value* method = object ? object->if_contains("method") : nullptr;
    return method && *method == "initialize";
  };
  if (batch.empty()) return refused(400, invalid_request, "The batch is empty");
  if (batch.size() > kMaxBatch)
    return refused(400, invalid_request, "The batch has more than 100 messages; send several");
  if (std::ranges::any_of(batch, modern))
    return refused(400, invalid_request,
                   "Batches are for 2025-03-26 only: send one message a POST");
  if (std::ranges::any_of(batch, initializes))
    return refused(400, invalid_request, "initialize cannot be part of a batch");
  return to(Step::To::legacy);
}

// Steps (a) to (c): the envelope, the header's version, then whether it is one of ours.
Step classify_modern(const Request& request, const json::object& message) {
  json::value id = mcp::readable_id(message);
  std::optional<mcp::Error> problem;
  try {
    mcp::read_envelope(message.at("params"), mcp::Peer());
  } catch (const mcp::Error& bad) {
    problem = bad;
  }
  bool sound = !problem || problem->code == mcp::ErrorCode::unsupported_protocol_version;
  const std::string* header = request.header(kVersionHeader);
  if (sound && header) {
    const json::value& body = message.at("params").at("_meta").at(mcp::kProtocolVersionKey);
    if (*header != body.get_string()) {
      return refused(400, mcp::ErrorCode::header_mismatch,
                     "The header MCP-Protocol-Version and params._meta name different versions",
                     nullptr, id);
    }
  }
  if (problem) return refused(400, problem->code, problem->what(), problem->data, id);
  return to(Step::To::modern);
}

Step classify_claimless(const Request& request, const json::object& message) {
  if (!header_names_modern(request)) return to(Step::To::legacy);
  json::value id = mcp::readable_id(message);
  if (message.at("method") == "initialize") {
    return refused(400, mcp::ErrorCode::header_mismatch,
                   "initialize is for revisions up to 2025-11-25, the header MCP-Protocol-Version "
                   "names 2026-07-28, which has server/discover instead",
                   nullptr, id);
  }
  return refused(400, mcp::ErrorCode::invalid_params,
                 "A request of 2026-07-28 needs params._meta with the keys " +
                     std::string(mcp::kProtocolVersionKey) + " and " +
                     std::string(mcp::kClientCapabilitiesKey),
                 nullptr, id);
}

}  // namespace

Step classify(const Request& request, const json::value& message) {
  if (const json::array* batch = message.if_array()) return classify_batch(*batch);
  const json::object* object = message.if_object();
  mcp::Kind kind = object ? mcp::kind_of(*object) : mcp::Kind::invalid;
  bool modern = object && mcp::claims_modern(*object);
  switch (kind) {
    case mcp::Kind::request:
      return modern ? classify_modern(request, *object) : classify_claimless(request, *object);
    case mcp::Kind::notification:
      return to(modern || header_names_modern(request) ? Step::To::accepted : Step::To::legacy);
    case mcp::Kind::response:
      return to(Step::To::legacy);
    case mcp::Kind::invalid:
      break;
  }
  json::value id = object ? mcp::readable_id(*object) : json::value();
  return refused(400, mcp::ErrorCode::invalid_request,
                 "Not a JSON-RPC 2.0 message: needs jsonrpc \"2.0\", a method, and an id that is a "
                 "string or a 64-bit integer",
                 nullptr, id);
}

}  // namespace transport::http
