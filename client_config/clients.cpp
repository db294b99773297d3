#include "client_config/clients.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace client_config {

namespace fs = std::filesystem;
namespace json = boost::json;
using Fields = std::optional<json::object>;

namespace {

json::array list(const std::vector<std::string>& texts) {
  json::array values;
  for (const std::string& text : texts) values.push_back(json::value(text));
  return values;
}

json::object program(const Server& server, const char* type = nullptr) {
  json::object fields;
  if (type) fields["type"] = type;
  fields["command"] = server.command;
  fields["args"] = list(server.arguments);
  return fields;
}

json::object address(const Server& server, const char* key, const char* type = nullptr) {
  json::object fields;
  if (type) fields["type"] = type;
  fields[key] = server.url;
  return fields;
}

Fields only_programs(const Server& server) {
  return server.url.empty() ? Fields(program(server)) : std::nullopt;
}
Fields url(const Server& server) {
  return server.url.empty() ? program(server) : address(server, "url");
}
Fields typed_http(const Server& server) {
  return server.url.empty() ? program(server) : address(server, "url", "http");
}
Fields vscode(const Server& server) {
  return server.url.empty() ? program(server, "stdio") : address(server, "url", "http");
}
// A plain `url` is not connected to in some versions.
Fields windsurf(const Server& server) {
  return server.url.empty() ? program(server) : address(server, "serverUrl");
}
// `url` would be HTTP+SSE.
Fields gemini(const Server& server) {
  return server.url.empty() ? program(server) : address(server, "httpUrl");
}
Fields librechat(const Server& server) {
  return server.url.empty() ? program(server, "stdio") : address(server, "url", "streamable-http");
}

// It cuts calls after 60 seconds unless it is told otherwise.
Fields codex(const Server& server) {
  json::object fields = server.url.empty() ? program(server) : address(server, "url");
  fields["tool_timeout_sec"] = 600;
  return fields;
}

Fields goose(const Server& server) {
  json::object fields;
  fields["name"] = server.name;
  fields["enabled"] = true;
  fields["type"] = server.url.empty() ? "stdio" : "streamable_http";
  if (server.url.empty()) {
    fields["cmd"] = server.command;
    fields["args"] = list(server.arguments);
  } else {
    fields["uri"] = server.url;
  }
  fields["timeout"] = 600;
  return fields;
}

constexpr const char* kRestart = "Restart it.";

}  // namespace

const std::vector<Client>& clients() {
  static const std::vector<Client> all{
      {"claude-desktop", "Claude Desktop", Format::json, "mcpServers",
#ifdef __APPLE__
       "Library/Application Support/Claude/claude_desktop_config.json",
#else
       ".config/Claude/claude_desktop_config.json",
#endif
       only_programs, "Quit it and start it again. A URL is added as a connector in its settings."},
      {"claude-code", "Claude Code", Format::json, "mcpServers", "./.mcp.json", typed_http,
       "Start `claude` in this directory, and approve the server."},
      {"vscode", "VS Code", Format::json, "servers",
#ifdef __APPLE__
       "Library/Application Support/Code/User/mcp.json",
#else
       ".config/Code/User/mcp.json",
#endif
       vscode, "Run \"MCP: List Servers\" and start it."},
      {"cursor", "Cursor", Format::json, "mcpServers", ".cursor/mcp.json", url, kRestart},
      {"windsurf", "Windsurf", Format::json, "mcpServers", ".codeium/windsurf/mcp_config.json",
       windsurf, "Refresh the list of MCP servers in Cascade."},
      {"jetbrains", "JetBrains Junie", Format::json, "mcpServers", ".junie/mcp/mcp.json",
       only_programs,
       "Restart the IDE. For AI Assistant, paste the entry in Settings > Tools > AI Assistant > "
       "MCP."},
      {"zed", "Zed", Format::json, "context_servers", ".config/zed/settings.json", url,
       "It starts the server at once."},
      {"codex", "Codex", Format::toml, "mcp_servers", ".codex/config.toml", codex, kRestart},
      {"gemini", "Gemini CLI", Format::json, "mcpServers", ".gemini/settings.json", gemini,
       kRestart},
      {"goose", "Goose", Format::yaml, "extensions", ".config/goose/config.yaml", goose, kRestart},
      {"librechat", "LibreChat", Format::yaml, "mcpServers", "./librechat.yaml", librechat,
       "Restart its server."}};
  return all;
}

const Client* find_client(const std::string& id) {
  auto found = std::ranges::find_if(clients(), [&](const Client& each) { return each.id == id; });
  return found == clients().end() ? nullptr : &*found;
}

fs::path default_file(const Client& client) {
  std::string file = client.file;
  if (file.starts_with("./")) return fs::current_path() / file.substr(2);
  const char* home = std::getenv("HOME");
  if (!home || *home != '/') {
    const passwd* user = getpwuid(getuid());
    home = user ? user->pw_dir : nullptr;
  }
  if (!home) throw std::runtime_error("there is no home directory: name the file with --file");
  return fs::path(home) / file;
}

}  // namespace client_config
