#pragma once

// Wire types of the MCP specification, in its order; only what we use. Member names are the wire's
// spelling; std::optional means "may be absent", everything else is required.

#include <boost/describe.hpp>
#include <boost/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace mcp {

// ---- lifecycle ----

struct Implementation {
  std::string name;
  std::optional<std::string> title;  // from 2025-06-18
  std::string version;
};
BOOST_DESCRIBE_STRUCT(Implementation, (), (name, title, version))

struct InitializeParams {
  std::string protocolVersion;
  std::optional<boost::json::object> capabilities;
  std::optional<boost::json::object> clientInfo;
};
BOOST_DESCRIBE_STRUCT(InitializeParams, (), (protocolVersion, capabilities, clientInfo))

struct InitializeResult {
  std::string protocolVersion;
  boost::json::object capabilities;
  Implementation serverInfo;
  std::optional<std::string> instructions;
};
BOOST_DESCRIBE_STRUCT(InitializeResult, (),
                      (protocolVersion, capabilities, serverInfo, instructions))

struct DiscoverResult {
  std::vector<std::string> supportedVersions;
  boost::json::object capabilities;
  std::optional<std::string> instructions;
};
BOOST_DESCRIBE_STRUCT(DiscoverResult, (), (supportedVersions, capabilities, instructions))

struct Empty {};
BOOST_DESCRIBE_STRUCT(Empty, (), ())

// ---- lists ----

struct ListParams {
  std::optional<std::string> cursor;
};
BOOST_DESCRIBE_STRUCT(ListParams, (), (cursor))

// ---- resources ----

struct ResourceTemplate {
  std::string uriTemplate;
  std::string name;
  std::optional<std::string> title;
  std::optional<std::string> description;
  std::optional<std::string> mimeType;
};
BOOST_DESCRIBE_STRUCT(ResourceTemplate, (), (uriTemplate, name, title, description, mimeType))

struct ListResourcesResult {
  std::vector<boost::json::object> resources;
};
BOOST_DESCRIBE_STRUCT(ListResourcesResult, (), (resources))

struct ListResourceTemplatesResult {
  std::vector<ResourceTemplate> resourceTemplates;
};
BOOST_DESCRIBE_STRUCT(ListResourceTemplatesResult, (), (resourceTemplates))

struct ReadResourceParams {
  std::string uri;
};
BOOST_DESCRIBE_STRUCT(ReadResourceParams, (), (uri))

struct ResourceContents {
  std::string uri;
  std::optional<std::string> mimeType;
  std::optional<std::string> text;
  std::optional<std::string> blob;  // base64
};
BOOST_DESCRIBE_STRUCT(ResourceContents, (), (uri, mimeType, text, blob))

struct ReadResourceResult {
  std::vector<ResourceContents> contents;
};
BOOST_DESCRIBE_STRUCT(ReadResourceResult, (), (contents))

// ---- tools ----

struct ToolInfo {
  std::string name;
  std::optional<std::string> title;  // from 2025-06-18
  std::string description;
  boost::json::object inputSchema;
  std::optional<boost::json::object> annotations;  // from 2025-03-26
};
BOOST_DESCRIBE_STRUCT(ToolInfo, (), (name, title, description, inputSchema, annotations))

struct ListToolsResult {
  std::vector<ToolInfo> tools;
};
BOOST_DESCRIBE_STRUCT(ListToolsResult, (), (tools))

struct CallToolParams {
  std::string name;
  std::optional<boost::json::value> arguments;  // absent, null and a JSON text occur in the field
};
BOOST_DESCRIBE_STRUCT(CallToolParams, (), (name, arguments))

// One content block. `type` says which members are there: text {text}, image {data, mimeType}.
struct Content {
  std::string type;
  std::optional<std::string> text;
  std::optional<std::string> data;  // base64: standard alphabet, padded, no line breaks
  std::optional<std::string> mimeType;
};
BOOST_DESCRIBE_STRUCT(Content, (), (type, text, data, mimeType))

inline Content text_content(std::string text) {
  Content content;
  content.type = "text";
  content.text = std::move(text);
  return content;
}

inline Content image_content(std::string base64, std::string mime_type) {
  Content content;
  content.type = "image";
  content.data = std::move(base64);
  content.mimeType = std::move(mime_type);
  return content;
}

struct CallToolResult {
  std::vector<Content> content;
  std::optional<bool> isError;
  std::optional<boost::json::object> _meta;
};
BOOST_DESCRIBE_STRUCT(CallToolResult, (), (content, isError, _meta))

// ---- logging ----

enum class LogLevel { debug, info, notice, warning, error, critical, alert, emergency };
BOOST_DESCRIBE_ENUM(LogLevel, debug, info, notice, warning, error, critical, alert, emergency)

struct SetLevelParams {
  LogLevel level;
};
BOOST_DESCRIBE_STRUCT(SetLevelParams, (), (level))

struct LoggingMessageParams {
  LogLevel level;
  std::string logger;
  boost::json::value data;
};
BOOST_DESCRIBE_STRUCT(LoggingMessageParams, (), (level, logger, data))

// ---- progress, cancellation ----

struct ProgressParams {
  boost::json::value progressToken;    // string or integer, as the client gave it
  boost::json::value progress;         // number
  std::optional<std::string> message;  // from 2025-03-26
};
BOOST_DESCRIBE_STRUCT(ProgressParams, (), (progressToken, progress, message))

struct CancelledParams {
  boost::json::value requestId;
  std::optional<std::string> reason;
};
BOOST_DESCRIBE_STRUCT(CancelledParams, (), (requestId, reason))

// ---- elicitation ----

// A question to the user in form mode: one flat object schema (2.12).
struct ElicitParams {
  std::string message;
  boost::json::object requestedSchema;
  std::optional<std::string> mode;  // from 2025-11-25; filled in by the server
};
BOOST_DESCRIBE_STRUCT(ElicitParams, (), (mode, message, requestedSchema))

struct ElicitResult {
  std::string action;  // accept | decline | cancel
  std::optional<boost::json::object> content;
};
BOOST_DESCRIBE_STRUCT(ElicitResult, (), (action, content))

// ---- input_required (2026-07-28) ----

// What the client adds to the params of a request that it makes again.
struct RetryParams {
  std::optional<std::string> requestState;
  std::optional<boost::json::object> inputResponses;
};
BOOST_DESCRIBE_STRUCT(RetryParams, (), (requestState, inputResponses))

struct InputRequest {
  std::string method;
  ElicitParams params;
};
BOOST_DESCRIBE_STRUCT(InputRequest, (), (method, params))

struct InputRequiredResult {
  std::string resultType = "input_required";
  boost::json::object inputRequests;  // name -> InputRequest
  std::string requestState;
};
BOOST_DESCRIBE_STRUCT(InputRequiredResult, (), (resultType, inputRequests, requestState))

}  // namespace mcp
