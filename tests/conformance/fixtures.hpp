#pragma once

// What the scenarios of the official conformance suite want to find in a server. Every fixture does
// what the scenario that is named in its source expects, and nothing else.

#include <boost/json.hpp>
#include <string>
#include <vector>

#include "mcp/server.hpp"

namespace conformance {

// Results of every kind, progress, log lines, schemas, changes.
std::vector<mcp::Tool> content_tools(mcp::Hub& hub);
// Those that ask the client while they run.
std::vector<mcp::Tool> asking_tools();
std::vector<mcp::Prompt> prompts();
mcp::awaitable<std::vector<std::string>> complete(mcp::Call& call,
                                                  const mcp::CompleteParams& params);

class Resources final : public mcp::Resources {
 public:
  std::vector<mcp::Resource> list() const override;
  std::vector<mcp::ResourceTemplate> templates() const override;
  mcp::awaitable<mcp::ReadResourceResult> read(mcp::Call& call, std::string uri) override;
};

// ---- the parts of fixtures ----

inline constexpr const char* kPng =  // one red pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
inline constexpr const char* kWav =  // no samples
    "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

mcp::CallToolResult text_result(std::string text);
mcp::ResourceContents text_resource(std::string uri, std::string text);
mcp::PromptMessage user_message(mcp::Content content);

// A question to the user with one required field.
mcp::InputRequest question(std::string message, const char* field, const char* type);

// A tool whose arguments are the members of Args; `properties` describes them.
template <class Args, class F>
mcp::Tool tool(std::string name, std::string description, const char* properties, F f) {
  mcp::ToolInfo info;
  info.name = std::move(name);
  info.description = std::move(description);
  info.inputSchema["type"] = "object";
  info.inputSchema["properties"] = boost::json::parse(properties);
  return mcp::make_tool<Args>(std::move(info), std::move(f));
}

struct Nothing {};
BOOST_DESCRIBE_STRUCT(Nothing, (), ())

}  // namespace conformance
