#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "tools/sessions.hpp"
#include "tools/tools.hpp"

namespace app {

class BackendKind;
std::vector<std::shared_ptr<BackendKind>> all_backends();  // backends.hpp

// What `pykeep http` can be told.
struct HttpOptions {
  bool is_used = false;  // `pykeep http` it is
  std::string listen = "127.0.0.1:8420";
  std::string address;     // of `listen`, without brackets
  std::uint16_t port = 0;  // of `listen`; 0 picks a free one
  std::string public_url;  // how clients reach us, without a trailing slash; may be empty
  std::vector<std::string> allowed_hosts, allowed_origins;

  std::string token_file;
  std::string token;         // from PYKEEP_TOKEN alone: a command line is there for all to read
  std::string oauth_issuer;  // OAuth is on when this is set
  std::string oauth_audience, oauth_jwks;
  std::vector<std::string> oauth_authorization_servers, oauth_scopes;

  std::string audit_file;
  double rate_limit = 0;   // requests a second and principal; 0: none
  std::size_t spares = 2;  // thawed kernels that wait for new sessions
  std::size_t max_mcp_sessions = 4096;
  std::size_t max_connections = 4096;
  std::chrono::seconds grace{10};

  bool authenticates() const {
    return !token_file.empty() || !token.empty() || !oauth_issuer.empty();
  }
};

// What `pykeep client-config` can be told.
struct ClientConfigOptions {
  std::string client;
  std::string name = "pykeep";  // of the entry
  std::string file, url;        // may be empty
  bool write = false, remove = false;
  std::vector<std::string> arguments;  // of the pykeep that the client starts
};

// Everything the command line and the environment can say, once checked.
struct Options {
  std::filesystem::path state_directory;  // absolute
  std::string log_level = "warning";
  std::string log_format = "text";  // or "json"
  std::vector<std::string> upload_roots;
  std::uint64_t upload_max = 256ull << 20;
  std::chrono::seconds start_limit{60};
  tools::SessionPolicy sessions;
  HttpOptions http;
  std::string backend = "local";
  std::vector<std::shared_ptr<BackendKind>> backends = all_backends();  // with their own options
  bool no_images = false;

  // Of single commands.
  bool json = false;                                            // doctor
  std::string code, file;                                       // run
  std::string output_directory;                                 // run
  double timeout = 600;                                         // run, seconds
  bool read_stdin = false;                                      // run
  std::string template_name = "default", python, requirements;  // template build
  bool system_packages = false;                                 // template build
  std::string stored_id;                                        // snapshots, sessions
  std::string format = "ipynb", output;                         // sessions export
  ClientConfigOptions client_config;
};

enum class Command {
  stdio,
  http,
  run,
  doctor,
  template_build,
  template_list,
  snapshots_list,
  snapshots_show,
  snapshots_delete,
  sessions_list,
  sessions_close,
  sessions_export,
  client_config
};

struct Invocation {
  Command command = Command::stdio;
  Options options;
};

// Reads argv and PYKEEP_… from the environment. Prints help, a version or what is wrong and ends
// the program: exit code 0, or 2 for a wrong use.
Invocation parse(int argc, char** argv);

}  // namespace app
