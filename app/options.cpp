#include "app/options.hpp"

#include <pwd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <boost/asio/ip/address.hpp>
#include <charconv>
#include <cstdlib>
#include <iostream>

#include "app/backends.hpp"
#include "app/option_table.hpp"
#include "app/subcommands.hpp"
#include "app/version.hpp"

namespace app {

namespace fs = std::filesystem;

namespace {

// Clients start us with an empty environment as well: then the user database knows the home.
fs::path default_state_directory() {
  if (const char* state = std::getenv("XDG_STATE_HOME"); state && *state == '/')
    return fs::path(state) / "pykeep";
  const char* home = std::getenv("HOME");
  if (!home || *home != '/') {
    const passwd* user = getpwuid(getuid());
    home = user ? user->pw_dir : "/var/tmp";
  }
  return fs::path(home) / ".local" / "state" / "pykeep";
}

const auto kCount = CLI::Range(std::uint64_t{1}, std::uint64_t{1'000'000});

class Table : OptionTable {
 public:
  Table(CLI::App& app, Options& options) : OptionTable(app), options_(options) {}

  void all() {
    auto& sessions = options_.sessions;
    auto& limits = sessions.limits;
    add("backend", options_.backend, "where sandboxes are: on this machine, or at PandaStack")
        ->check(CLI::IsMember(backend_names()));
    for (const auto& kind : options_.backends) kind->declare(*this);
    add("state-dir", state_, "where sessions and templates are kept");
    add("log-level", options_.log_level, "what goes to stderr")
        ->check(CLI::IsMember({"debug", "info", "warning", "error", "off"}));
    add("log-format", options_.log_format, "how: lines for people, or a JSON object each")
        ->check(CLI::IsMember({"text", "json"}));
    add("template", sessions.default_python,
        "Python environment: a name, a path, or `system`; default: the one built, else `system`");
    add("session", sessions.default_name,
        "make the default session a durable one of this name (stdio)");
    flag("allow-network", sessions.allow_network,
         "let create_session turn the network on; it then reaches this machine's loopback too");
    add("env", environment_, "NAME or NAME=VALUE that kernels shall see (repeatable)");
    add("upload-root", options_.upload_roots,
        "directory that upload_file may read from (repeatable); default: the working directory, "
        "over HTTP none")
        ->check(CLI::ExistingDirectory);
    size("upload-max", options_.upload_max, "largest upload");
    size("memory", limits.memory, "memory of a session, all its processes together");
    add("processes", limits.processes, "processes and threads of a session")->check(kCount);
    add("open-files", limits.open_files, "open files of a process")->check(kCount);
    size("tmp", limits.tmp, "size of /tmp and of /dev/shm");
    size("workspace", limits.workspace, "size of /workspace");
    size("file-size", limits.file, "size of one file");
    seconds("start-limit", options_.start_limit, "how long a kernel may take to start");
    flag("no-images", options_.no_images,
         "start every kernel cold; no session can be put on disk or snapshot then");
    add("max-kernels", sessions.max_live, "kernels at once")->check(kCount);
    seconds("idle-timeout", sessions.idle_timeout, "without use, until a kernel is put on disk");
    seconds("session-ttl", sessions.session_ttl,
            "without use, until a kernel that cannot be put on disk is stopped");
    seconds("keep", sessions.keep, "without use, until a session is deleted");
    size("disk", sessions.disk,
         "of snapshots and of sessions that do not run: the oldest sessions go first, no snapshot");
    add("checkpoint-cells", sessions.checkpoints.cells,
        "save a kernel for the case that it dies, every so many cells; 0: not for that reason")
        ->check(CLI::Range(0, 1'000'000));
    seconds("checkpoint-seconds", sessions.checkpoints.work,
            "the same after so much work; 0: not for that reason", 0);
    add("max-snapshots", sessions.max_snapshots, "snapshots of one principal")->check(kCount);
    seconds("snapshot-keep", sessions.snapshot_keep, "until a snapshot is deleted; 0: never", 0);
  }

  void http() {
    HttpOptions& http = options_.http;
    add("listen", http.listen, "ADDRESS:PORT; port 0 picks a free one");
    add("public-url", http.public_url, "how clients reach us, behind a proxy: https://host");
    add("allowed-host", http.allowed_hosts,
        "a `Host` to answer to besides the own address (repeatable): name or name:port");
    add("allowed-origin", http.allowed_origins,
        "a web page's origin that may call us (repeatable): https://host");
    add("token-file", http.token_file,
        "bearer tokens, one `principal: token` a line; SIGHUP rereads it")
        ->check(CLI::ExistingFile);
    add("oauth-issuer", http.oauth_issuer, "accept JWTs of this issuer (OAuth 2.1)");
    add("oauth-audience", http.oauth_audience, "`aud` they must have; default: our URL");
    add("oauth-jwks", http.oauth_jwks, "file or URL with the issuer's keys");
    add("oauth-authorization-server", http.oauth_authorization_servers,
        "where clients get tokens (repeatable); default: the issuer");
    add("oauth-scope", http.oauth_scopes, "scope that a token must have (repeatable)");
    add("audit-file", http.audit_file, "append a JSON line for each execution");
    add("rate-limit", http.rate_limit, "requests a second and principal; 0: no limit")
        ->check(CLI::Range(0.0, 1e6));
    add("max-principal-kernels", kernels_each_,
        "kernels at once of one principal; 0: all there are")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{1'000'000}));
    add("max-mcp-sessions", http.max_mcp_sessions, "MCP sessions at once")->check(kCount);
    add("spares", http.spares, "thawed kernels that wait for new sessions; 0: none")
        ->check(CLI::Range(0, 64));
    add("max-connections", http.max_connections, "connections at once")->check(kCount);
    seconds("grace", http.grace, "what running cells get to end when we are stopped");
  }

  void check_http() {
    HttpOptions& http = options_.http;
    http.is_used = true;
    read_address(http);
    if (kernels_each_ > 0) options_.sessions.max_live_per_principal = kernels_each_;
    if (const char* token = std::getenv("PYKEEP_TOKEN")) http.token = token;
    while (http.public_url.ends_with('/')) http.public_url.pop_back();
    if (!http.public_url.empty() && !is_url(http.public_url))
      throw CLI::ValidationError("--public-url: expected http(s)://host: " + http.public_url);
    for (const std::string& origin : http.allowed_origins)
      if (!is_url(origin) || origin.find('/', origin.find("//") + 2) != origin.npos)
        throw CLI::ValidationError(
            "--allowed-origin: expected scheme://host[:port], as browsers send it; there is no "
            "wildcard: " +
            origin);
    if (!http.oauth_issuer.empty() && http.oauth_jwks.empty())
      throw CLI::ValidationError("--oauth-issuer needs --oauth-jwks, a file or URL with its keys");
    if (!http.authenticates() && !is_loopback(http.address))
      throw CLI::ValidationError(
          "--listen " + http.listen +
          ": not a loopback address, so everybody who reaches it could run code here. Set "
          "--token-file, PYKEEP_TOKEN or --oauth-issuer; or listen on 127.0.0.1");
  }

  void check() {
    fs::path state = state_.empty() ? default_state_directory() : fs::path(state_);
    options_.state_directory = fs::absolute(state).lexically_normal();
    options_.sessions.max_live_per_principal = options_.sessions.max_live;
    for (const std::string& entry : environment_) add_variable(entry);
  }

 private:
  std::vector<std::string> backend_names() const {
    std::vector<std::string> names;
    for (const auto& kind : options_.backends) names.push_back(kind->name());
    return names;
  }

  static bool is_url(const std::string& text) {
    return text.starts_with("https://") || text.starts_with("http://");
  }

  static bool is_loopback(const std::string& address) {
    return boost::asio::ip::make_address(address).is_loopback();
  }

  static void read_address(HttpOptions& http) {
    std::size_t colon = http.listen.rfind(':');
    std::string host = http.listen.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    if (host == "localhost") host = "127.0.0.1";
    boost::system::error_code not_numeric;
    auto address = boost::asio::ip::make_address(host, not_numeric);
    bool bare_v6 = !not_numeric && address.is_v6() && !http.listen.starts_with('[');
    const char* end = http.listen.data() + http.listen.size();
    const char* digits = colon == http.listen.npos ? end : http.listen.data() + colon + 1;
    auto [rest, failed] = std::from_chars(digits, end, http.port);
    if (not_numeric || bare_v6 || failed != std::errc() || rest != end)
      throw CLI::ValidationError(
          "--listen: expected ADDRESS:PORT such as 127.0.0.1:8420 or [::1]:8420: " + http.listen);
    http.address = address.to_string();
  }

  void add_variable(const std::string& entry) {
    std::size_t equals = entry.find('=');
    std::string name = entry.substr(0, equals);
    if (name.empty()) throw CLI::ValidationError("--env: expected NAME or NAME=VALUE");
    const char* own = std::getenv(name.c_str());
    if (equals != entry.npos)
      options_.sessions.environment.emplace_back(name, entry.substr(equals + 1));
    else if (own)
      options_.sessions.environment.emplace_back(name, own);
  }

  Options& options_;
  std::string state_;
  std::vector<std::string> environment_;
  std::size_t kernels_each_ = 0;
};

// What a client is to start us with is tried now: it would only see a server that ends.
void check_arguments(std::vector<std::string> arguments) {
  std::vector<char*> argv{program_invocation_short_name};
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  parse(static_cast<int>(argv.size()) - 1, argv.data());
}

}  // namespace

Invocation parse(int argc, char** argv) {
  Invocation invocation;
  Options& options = invocation.options;
  CLI::App app(
      "A keep for Python that agents can use: an MCP server with a persistent, isolated kernel.\n"
      "Without a command it serves MCP over stdio.");
  app.set_version_flag("--version", std::string("pykeep ") + PYKEEP_VERSION);
  app.fallthrough();
  app.require_subcommand(0, 1);
  Table table(app, options);
  table.all();
  add_commands(app, options);
  CLI::App* http = app.add_subcommand("http", "Serve MCP over HTTP, at /mcp");
  Table http_table(*http, options);
  http_table.http();
  try {
    app.parse(argc, argv);
    table.check();
    if (app.got_subcommand("http")) http_table.check_http();
    bool two = !options.code.empty() && !options.file.empty();
    bool none = options.code.empty() && options.file.empty();
    if (app.got_subcommand("run") && (two || none))
      throw CLI::ValidationError("run: give either -c CODE or a file");
  } catch (const CLI::ParseError& end) {
    int code = app.exit(end, std::cout, std::cerr);
    std::exit(code == 0 ? 0 : 2);
  }
  invocation.command = command_of(app);
  if (invocation.command == Command::client_config)
    check_arguments(options.client_config.arguments);
  return invocation;
}

}  // namespace app
