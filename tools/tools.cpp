#include "tools/tools.hpp"

#include "schemas/catalogue.hpp"
#include "schemas/codec.hpp"

namespace tools {

std::vector<mcp::Tool> all(Sessions& sessions, Snapshots& snapshots, boost::asio::thread_pool& pool,
                           UploadPolicy uploads, Tickets& tickets) {
  std::vector<mcp::Tool> list;
  list.push_back(run_python(sessions));
  list.push_back(wait_execution(sessions));
  list.push_back(interrupt_execution(sessions));
  list.push_back(upload_file(sessions, pool, std::move(uploads), tickets));
  list.push_back(download_file(sessions, tickets));
  list.push_back(list_files(sessions));
  list.push_back(snapshot(sessions, snapshots));
  list.push_back(restore_snapshot(snapshots));
  list.push_back(delete_snapshot(snapshots));
  list.push_back(create_session(sessions));
  list.push_back(list_sessions(sessions, snapshots));
  list.push_back(close_session(sessions));
  return list;
}

mcp::ToolInfo tool_info(std::string_view name) {
  return schemas::decode<mcp::ToolInfo>(schemas::document(name));
}

mcp::CallToolResult text_result(std::string text) {
  mcp::CallToolResult result;
  result.content.push_back(mcp::text_content(std::move(text)));
  return result;
}

}  // namespace tools
