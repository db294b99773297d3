#pragma once

#include <boost/asio/thread_pool.hpp>
#include <vector>

#include "mcp/tool.hpp"
#include "tools/sessions.hpp"
#include "tools/snapshots.hpp"
#include "tools/tickets.hpp"

namespace tools {

// What upload_file may read on the server's machine.
struct UploadPolicy {
  std::vector<std::filesystem::path> roots;  // absolute; empty: no `path` of this machine
  std::uint64_t max_bytes = 256ull << 20;
};

// One function a tool; each in the file of its name. What they refer to outlives the tools.
mcp::Tool run_python(Sessions& sessions);
mcp::Tool wait_execution(Sessions& sessions);
mcp::Tool interrupt_execution(Sessions& sessions);
mcp::Tool upload_file(Sessions& sessions, boost::asio::thread_pool& pool, UploadPolicy policy,
                      Tickets& tickets);
mcp::Tool download_file(Sessions& sessions, Tickets& tickets);
mcp::Tool list_files(Sessions& sessions);
mcp::Tool snapshot(Sessions& sessions, Snapshots& snapshots);
mcp::Tool restore_snapshot(Snapshots& snapshots);
mcp::Tool delete_snapshot(Snapshots& snapshots);
mcp::Tool create_session(Sessions& sessions);
mcp::Tool list_sessions(Sessions& sessions, Snapshots& snapshots);
mcp::Tool close_session(Sessions& sessions);

// Every tool this server offers, in the order of tools/list. To add one: its file, its schema
// document, its test, a line above and a line in tools.cpp.
std::vector<mcp::Tool> all(Sessions& sessions, Snapshots& snapshots, boost::asio::thread_pool& pool,
                           UploadPolicy uploads, Tickets& tickets);

// The parts every tool file needs.
mcp::ToolInfo tool_info(std::string_view name);  // from its schema document
mcp::CallToolResult text_result(std::string text);

}  // namespace tools
