#include "mcp/envelope.hpp"

#include "mcp/error.hpp"
#include "schemas/codec.hpp"

namespace mcp {

namespace json = boost::json;

namespace {

const json::object* object_at(const json::object& in, std::string_view key) {
  const json::value* found = in.if_contains(key);
  return found ? found->if_object() : nullptr;
}

void expect_object_or_null(const json::value& in, const char* path) {
  if (!in.is_object() && !in.is_null())
    throw Error(ErrorCode::invalid_params, std::string(path) + ": expected object");
}

Revision modern_revision(const json::object& meta) {
  const json::value& version = meta.at(kProtocolVersionKey);
  const json::object* capabilities = object_at(meta, kClientCapabilitiesKey);
  std::string problem;
  if (!version.is_string()) problem = std::string(kProtocolVersionKey) + ": expected string";
  if (!capabilities) problem = std::string(kClientCapabilitiesKey) + ": expected object";
  if (!problem.empty()) throw Error(ErrorCode::invalid_params, "params._meta." + problem);

  std::string requested(version.get_string());
  std::optional<Revision> known = parse_revision(requested);
  if (known && era_of(*known) == Era::modern) return *known;
  // Legacy revisions are not listed: naming one here would not select it (`initialize` does).
  json::array supported;
  supported.emplace_back(to_string(Revision::v2026_07_28));
  json::object data;
  data["supported"] = std::move(supported);
  data["requested"] = schemas::clipped(requested);
  throw Error(ErrorCode::unsupported_protocol_version, "Unsupported protocol version",
              std::move(data));
}

std::optional<LogLevel> modern_log_level(const json::object& meta) {
  const json::value* level = meta.if_contains(kLogLevelKey);
  if (!level) return std::nullopt;
  try {
    return schemas::decode<LogLevel>(*level);
  } catch (const schemas::DecodeError& bad) {
    throw Error(ErrorCode::invalid_params, std::string(kLogLevelKey) + ": " + bad.what());
  }
}

}  // namespace

bool is_id(const json::value& id) { return id.is_string() || id.is_int64() || id.is_uint64(); }

std::string key_of(const json::value& id) { return json::serialize(id); }

Kind kind_of(const json::object& message) {
  const json::value* id = message.if_contains("id");
  const json::value* method = message.if_contains("method");
  if (!method) {
    bool answers = message.contains("result") || message.contains("error");
    return id && answers ? Kind::response : Kind::invalid;
  }
  const json::value* version = message.if_contains("jsonrpc");
  bool sound = method->is_string() && version && version->is_string() && *version == "2.0";
  if (!sound || (id && !is_id(*id))) return Kind::invalid;
  return id ? Kind::request : Kind::notification;
}

json::value readable_id(const json::object& message) {
  const json::value* id = message.if_contains("id");
  return id && is_id(*id) ? *id : json::value();
}

json::value readable_id(const json::value& message) {
  const json::object* object = message.if_object();
  return object ? readable_id(*object) : json::value();
}

bool claims_modern(const json::object& message) {
  const json::object* params = object_at(message, "params");
  const json::object* meta = params ? object_at(*params, "_meta") : nullptr;
  return meta && meta->contains(kProtocolVersionKey);
}

Envelope read_envelope(const json::value& params, const Peer& peer) {
  Envelope out;
  expect_object_or_null(params, "params");
  if (const json::value* meta =
          params.is_object() ? params.get_object().if_contains("_meta") : nullptr) {
    expect_object_or_null(*meta, "params._meta");
    if (meta->is_object()) out.meta = meta->get_object();
  }
  if (out.meta.contains(kProtocolVersionKey)) {
    out.revision = modern_revision(out.meta);
    out.capabilities = out.meta.at(kClientCapabilitiesKey).get_object();
    out.log_level = modern_log_level(out.meta);
  } else if (peer.legacy) {
    out.revision = peer.legacy->revision;
    out.capabilities = peer.legacy->capabilities;
  }
  const json::value* token = out.meta.if_contains("progressToken");
  if (token && is_id(*token)) out.progress_token = *token;  // the same types as an id
  return out;
}

}  // namespace mcp
