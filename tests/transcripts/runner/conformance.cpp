#include "tests/transcripts/runner/conformance.hpp"

#include <fstream>
#include <sstream>
#include <stdexcept>
#include <valijson/adapters/boost_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

namespace transcripts {

namespace {

constexpr const char* kModern = "2026-07-28";
constexpr const char* kNewestLegacy = "2025-11-25";
constexpr const char* kClaim = "io.modelcontextprotocol/protocolVersion";

const json::value* find(const json::value& from, std::initializer_list<std::string_view> path) {
  const json::value* at = &from;
  for (std::string_view key : path) {
    const json::object* object = at->if_object();
    at = object ? object->if_contains(key) : nullptr;
    if (!at) return nullptr;
  }
  return at;
}

std::string text_at(const json::value& from, std::initializer_list<std::string_view> path) {
  const json::value* found = find(from, path);
  return found && found->is_string() ? std::string(found->get_string()) : std::string();
}

}  // namespace

// One released schema document.
class Conformance::Revision {
 public:
  explicit Revision(const std::filesystem::path& file) {
    std::ifstream in(file);
    std::stringstream text;
    text << in.rdbuf();
    document_ = json::parse(text.str()).as_object();
    definitions_key_ = document_.contains("$defs") ? "$defs" : "definitions";
  }

  bool has(const std::string& definition) const { return definitions().contains(definition); }

  // "CallToolRequest" for "tools/call"; empty if this revision has no such method.
  std::string definition_of(const std::string& method) const {
    for (const auto& definition : definitions())
      if (text_at(definition.value(), {"properties", "method", "const"}) == method)
        return std::string(definition.key());
    return {};
  }

  std::optional<std::string> check(const std::string& definition, const json::value& value) {
    valijson::Validator validator;
    valijson::ValidationResults results;
    valijson::adapters::BoostJsonAdapter adapter(value);
    if (validator.validate(schema(definition), adapter, &results)) return std::nullopt;
    std::string problems = "not a valid " + definition + ":";
    valijson::ValidationResults::Error error;
    while (results.popError(error)) {
      problems += "\n    ";
      for (const std::string& step : error.context) problems += step;
      problems += ": " + error.description;
    }
    return problems;
  }

 private:
  const json::object& definitions() const { return document_.at(definitions_key_).as_object(); }

  const valijson::Schema& schema(const std::string& definition) {
    auto& schema = parsed_[definition];
    if (schema) return *schema;
    json::object root = document_;
    root["$ref"] = "#/" + definitions_key_ + "/" + definition;
    json::value root_value(std::move(root));
    schema = std::make_unique<valijson::Schema>();
    valijson::SchemaParser parser;
    parser.populateSchema(valijson::adapters::BoostJsonAdapter(root_value), *schema);
    return *schema;
  }

  json::object document_;
  std::string definitions_key_;
  std::map<std::string, std::unique_ptr<valijson::Schema>> parsed_;
};

Conformance::Conformance(std::filesystem::path schemas) : schemas_(std::move(schemas)) {}
Conformance::~Conformance() = default;

Conformance::Revision& Conformance::revision(const std::string& name) {
  auto& revision = revisions_[name];
  if (!revision) revision = std::make_unique<Revision>(schemas_ / name / "schema.json");
  return *revision;
}

std::string Conformance::legacy() const {
  return negotiated_.empty() ? kNewestLegacy : negotiated_;
}

void Conformance::client_sent(const std::string& line) {
  boost::system::error_code malformed;
  json::value message = json::parse(line, malformed);
  if (malformed) return;
  if (const json::array* batch = message.if_array())
    for (const json::value& item : *batch) note(item);
  else
    note(message);
}

void Conformance::note(const json::value& message) {
  const json::value* id = find(message, {"id"});
  const json::value* method = find(message, {"method"});
  if (!id || !method || !method->is_string()) return;
  bool modern = find(message, {"params", "_meta", kClaim});
  modern_seen_ |= modern;
  Asked asked{std::string(method->get_string()), modern ? kModern : ""};
  const json::value* token = find(message, {"params", "_meta", "progressToken"});
  if (token) progress_[json::serialize(*token)] = asked.revision;
  asked_[json::serialize(*id)] = std::move(asked);
}

std::optional<std::string> Conformance::server_sent(const json::value& message) {
  if (const json::array* batch = message.if_array()) {
    if (legacy() != "2025-03-26") return "a batch, which only 2025-03-26 has";
    for (const json::value& item : *batch)
      if (auto problem = server_sent(item)) return problem;
    return std::nullopt;
  }
  const json::object* object = message.if_object();
  if (!object) return "neither an object nor an array";
  return object->contains("method") ? check_call(*object) : check_response(*object);
}

std::optional<std::string> Conformance::check_response(const json::object& message) {
  const json::value* id = message.if_contains("id");
  auto asked = asked_.find(id ? json::serialize(*id) : "");
  bool known = asked != asked_.end();
  std::string method = known ? asked->second.method : "";
  if (method == "initialize" && message.contains("result"))
    negotiated_ = text_at(message, {"result", "protocolVersion"});
  bool modern = known && !asked->second.revision.empty();
  std::string name = modern ? kModern : legacy();
  Revision& schema = revision(name);

  if (message.contains("error")) {
    bool has_form = schema.has("JSONRPCErrorResponse");
    if (!id && !has_form) return std::nullopt;
    return schema.check(has_form ? "JSONRPCErrorResponse" : "JSONRPCError", message);
  }
  if (!known) return "an answer to nothing that was asked";
  std::string envelope =
      schema.has("JSONRPCResultResponse") ? "JSONRPCResultResponse" : "JSONRPCResponse";
  if (auto problem = schema.check(envelope, message)) return problem;

  std::string request = schema.definition_of(method);
  if (request.empty()) return "a result for a method that " + name + " does not have";
  std::string result = request.substr(0, request.size() - std::string("Request").size()) + "Result";
  if (text_at(message, {"result", "resultType"}) == "input_required")
    result = "InputRequiredResult";
  if (!schema.has(result)) result = "EmptyResult";
  return schema.check(result, message.at("result"));
}

std::optional<std::string> Conformance::check_call(const json::object& message) {
  std::string method = text_at(message, {"method"});
  const json::value* token = find(message, {"params", "progressToken"});
  bool modern = negotiated_.empty() && modern_seen_;
  if (token) {
    auto asked = progress_.find(json::serialize(*token));
    if (asked == progress_.end()) return "progress under a token that nobody gave";
    modern = !asked->second.empty();
  }
  if (message.contains("id") && modern) return "a request to a modern client";
  Revision& schema = revision(modern ? kModern : legacy());
  std::string definition = schema.definition_of(method);
  if (definition.empty()) return "no such message from a server: " + method;
  std::string envelope = message.contains("id") ? "JSONRPCRequest" : "JSONRPCNotification";
  if (auto problem = schema.check(envelope, message)) return problem;
  return schema.check(definition, message);
}

}  // namespace transcripts
