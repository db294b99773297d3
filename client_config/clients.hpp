#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "client_config/edit.hpp"

namespace client_config {

// How a client reaches us: it starts a program, or calls a URL.
struct Server {
  std::string name = "pykeep";
  std::string command;
  std::vector<std::string> arguments;
  std::string url;  // not empty: that, and no program
};

// An MCP client, and how it wants to be told of a server.
struct Client {
  const char* id;     // "claude-desktop"
  const char* title;  // "Claude Desktop"
  Format format;
  const char* table;  // where its servers are
  // Below the home directory, or with "./" before it below the working directory.
  const char* file;
  // The fields of an entry. For a URL nullopt: it only starts programs.
  std::optional<boost::json::object> (*fields)(const Server& server);
  const char* then;  // what its user has to do next
};

// All that are known, in the order of their help.
const std::vector<Client>& clients();

const Client* find_client(const std::string& id);

// Where this user's file is. Throws std::runtime_error without a home directory.
std::filesystem::path default_file(const Client& client);

}  // namespace client_config
