#pragma once

// Wire types of what a server may ask of its client, and how (protocol.hpp has the others).

#include "mcp/protocol.hpp"

namespace mcp {

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

struct SamplingMessage {
  std::string role;  // user | assistant
  Content content;   // text, image or audio
};
BOOST_DESCRIBE_STRUCT(SamplingMessage, (), (role, content))

struct CreateMessageParams {
  std::vector<SamplingMessage> messages;
  std::optional<std::string> systemPrompt;
  int maxTokens;
};
BOOST_DESCRIBE_STRUCT(CreateMessageParams, (), (messages, systemPrompt, maxTokens))

struct CreateMessageResult {
  std::string role;
  boost::json::value content;  // one block; from 2025-11-25 also an array of them
  std::string model;
  std::optional<std::string> stopReason;
};
BOOST_DESCRIBE_STRUCT(CreateMessageResult, (), (role, content, model, stopReason))

struct Root {
  std::string uri;
  std::optional<std::string> name;
};
BOOST_DESCRIBE_STRUCT(Root, (), (uri, name))

struct ListRootsResult {
  std::vector<Root> roots;
};
BOOST_DESCRIBE_STRUCT(ListRootsResult, (), (roots))

// One of the above: a request of its own to a legacy client, part of a result to a modern one.
struct InputRequest {
  std::string method;
  boost::json::object params;
};
BOOST_DESCRIBE_STRUCT(InputRequest, (), (method, params))

// ---- input_required (2026-07-28) ----

// What the client adds to the params of a request that it makes again.
struct RetryParams {
  std::optional<std::string> requestState;
  std::optional<boost::json::object> inputResponses;
};
BOOST_DESCRIBE_STRUCT(RetryParams, (), (requestState, inputResponses))

struct InputRequiredResult {
  std::string resultType = "input_required";
  std::optional<boost::json::object> inputRequests;  // name -> InputRequest
  std::optional<std::string> requestState;
};
BOOST_DESCRIBE_STRUCT(InputRequiredResult, (), (resultType, inputRequests, requestState))

}  // namespace mcp
