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

struct Resource {
  std::string uri;
  std::string name;
  std::optional<std::string> title;  // from 2025-06-18
  std::optional<std::string> description;
  std::optional<std::string> mimeType;
};
BOOST_DESCRIBE_STRUCT(Resource, (), (uri, name, title, description, mimeType))

struct ResourceTemplate {
  std::string uriTemplate;
  std::string name;
  std::optional<std::string> title;
  std::optional<std::string> description;
  std::optional<std::string> mimeType;
};
BOOST_DESCRIBE_STRUCT(ResourceTemplate, (), (uriTemplate, name, title, description, mimeType))

struct ListResourcesResult {
  std::vector<Resource> resources;
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

// ---- subscriptions ----

struct SubscribeParams {  // legacy; resources/unsubscribe has the same
  std::string uri;
};
BOOST_DESCRIBE_STRUCT(SubscribeParams, (), (uri))

// What a modern client wants to hear of, and in the acknowledgement what it will.
struct Notifications {
  std::optional<bool> toolsListChanged;
  std::optional<bool> promptsListChanged;
  std::optional<bool> resourcesListChanged;
  std::optional<std::vector<std::string>> resourceSubscriptions;
};
BOOST_DESCRIBE_STRUCT(Notifications, (),
                      (toolsListChanged, promptsListChanged, resourcesListChanged,
                       resourceSubscriptions))

struct ListenParams {
  Notifications notifications;
};
BOOST_DESCRIBE_STRUCT(ListenParams, (), (notifications))

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

// One content block. `type` says which members are there: text {text}, image and audio (from
// 2025-03-26) {data, mimeType}, resource {resource}.
struct Content {
  std::string type;
  std::optional<std::string> text;
  std::optional<std::string> data;  // base64: standard alphabet, padded, no line breaks
  std::optional<std::string> mimeType;
  std::optional<ResourceContents> resource;
};
BOOST_DESCRIBE_STRUCT(Content, (), (type, text, data, mimeType, resource))

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

inline Content audio_content(std::string base64, std::string mime_type) {
  Content content = image_content(std::move(base64), std::move(mime_type));
  content.type = "audio";
  return content;
}

inline Content resource_content(ResourceContents contents) {
  Content content;
  content.type = "resource";
  content.resource = std::move(contents);
  return content;
}

struct CallToolResult {
  std::vector<Content> content;
  std::optional<bool> isError;
  std::optional<boost::json::object> _meta;
};
BOOST_DESCRIBE_STRUCT(CallToolResult, (), (content, isError, _meta))

// ---- prompts ----

struct PromptArgument {
  std::string name;
  std::optional<std::string> title;  // from 2025-06-18
  std::optional<std::string> description;
  std::optional<bool> required;
};
BOOST_DESCRIBE_STRUCT(PromptArgument, (), (name, title, description, required))

struct PromptInfo {
  std::string name;
  std::optional<std::string> title;  // from 2025-06-18
  std::optional<std::string> description;
  std::vector<PromptArgument> arguments;
};
BOOST_DESCRIBE_STRUCT(PromptInfo, (), (name, title, description, arguments))

struct ListPromptsResult {
  std::vector<PromptInfo> prompts;
};
BOOST_DESCRIBE_STRUCT(ListPromptsResult, (), (prompts))

struct GetPromptParams {
  std::string name;
  std::optional<boost::json::object> arguments;  // of strings
};
BOOST_DESCRIBE_STRUCT(GetPromptParams, (), (name, arguments))

struct PromptMessage {
  std::string role;  // user | assistant
  Content content;
};
BOOST_DESCRIBE_STRUCT(PromptMessage, (), (role, content))

struct GetPromptResult {
  std::optional<std::string> description;
  std::vector<PromptMessage> messages;
};
BOOST_DESCRIBE_STRUCT(GetPromptResult, (), (description, messages))

// ---- completion ----

struct Reference {
  std::string type;  // ref/prompt {name} | ref/resource {uri: a template's}
  std::optional<std::string> name;
  std::optional<std::string> uri;
};
BOOST_DESCRIBE_STRUCT(Reference, (), (type, name, uri))

struct CompleteArgument {
  std::string name;
  std::string value;  // as far as it has been typed
};
BOOST_DESCRIBE_STRUCT(CompleteArgument, (), (name, value))

struct CompleteContext {
  std::optional<boost::json::object> arguments;  // those already settled; strings
};
BOOST_DESCRIBE_STRUCT(CompleteContext, (), (arguments))

struct CompleteParams {
  Reference ref;
  CompleteArgument argument;
  std::optional<CompleteContext> context;  // from 2025-06-18
};
BOOST_DESCRIBE_STRUCT(CompleteParams, (), (ref, argument, context))

struct Completion {
  std::vector<std::string> values;  // at most 100
  std::optional<std::size_t> total;
  std::optional<bool> hasMore;
};
BOOST_DESCRIBE_STRUCT(Completion, (), (values, total, hasMore))

struct CompleteResult {
  Completion completion;
};
BOOST_DESCRIBE_STRUCT(CompleteResult, (), (completion))

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
  boost::json::value progressToken;  // string or integer, as the client gave it
  boost::json::value progress;       // number
  std::optional<boost::json::value> total;
  std::optional<std::string> message;  // from 2025-03-26
};
BOOST_DESCRIBE_STRUCT(ProgressParams, (), (progressToken, progress, total, message))

struct CancelledParams {
  boost::json::value requestId;
  std::optional<std::string> reason;
};
BOOST_DESCRIBE_STRUCT(CancelledParams, (), (requestId, reason))

}  // namespace mcp
