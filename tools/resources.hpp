#pragma once

#include "mcp/tool.hpp"
#include "tools/sessions.hpp"

namespace tools {

// Files of a workspace, outputs of an execution, and a session's whole history as a notebook or a
// script, as MCP resources (resource_uri.hpp has the URIs). Only templates are listed: a
// principal's sessions are nobody else's business.
class SessionResources final : public mcp::Resources {
 public:
  explicit SessionResources(Sessions& sessions) : sessions_(sessions) {}
  std::vector<mcp::ResourceTemplate> templates() const override;
  awaitable<mcp::ReadResourceResult> read(mcp::Call& call, std::string uri) override;

 private:
  awaitable<mcp::ResourceContents> read_file(std::shared_ptr<Session> session, std::string path,
                                             std::string uri);
  Sessions& sessions_;
};

}  // namespace tools
