// The entry that makes an MCP client start us, printed or put into its file.

#include <cstdio>
#include <cstdlib>
#include <stdexcept>

#include "app/commands.hpp"
#include "client_config/clients.hpp"
#include "client_config/config_file.hpp"

namespace app {

namespace fs = std::filesystem;
using client_config::Client;
using client_config::ConfigFile;
using client_config::Entry;

namespace {

// Absolute: clients know nothing of a shell's PATH. The name we were found by outlives an upgrade
// that moves what it leads to. The Python package's launcher names itself: without it kernels would
// not get its environment.
std::string own_path() {
  if (const char* launcher = std::getenv("PYKEEP_LAUNCHER"); launcher && *launcher == '/')
    return launcher;
  fs::path self = fs::read_symlink("/proc/self/exe");
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "";
  while (!rest.empty()) {
    std::size_t end = std::min(rest.find(':'), rest.size());
    fs::path candidate = fs::path(rest.substr(0, end)) / "pykeep";
    std::error_code absent;
    if (candidate.is_absolute() && fs::equivalent(candidate, self, absent)) return candidate;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return self;
}

// What npx and uvx made for one run: clients would find nothing there once the cache is emptied.
void warn_of_cache(const std::string& command) {
  const bool npx = command.find("/_npx/") != std::string::npos;
  const bool uvx = command.find("/.cache/uv/") != std::string::npos ||
                   command.find("/archive-v0/") != std::string::npos;  // another UV_CACHE_DIR
  if (!npx && !uvx) return;
  std::fprintf(
      stderr,
      "pykeep: %s lies in a cache of %s, and goes with it. Give the entry %s as its command "
      "and what you ran it with as its arguments, paths absolute; or install pykeep (%s) and "
      "run the client-config of that.\n",
      command.c_str(), npx ? "npx" : "uv", npx ? "npx" : "uvx",
      npx ? "npm install -g" : "uv tool install");
}

Entry entry_for(const Client& client, const ClientConfigOptions& options) {
  client_config::Server server;
  server.name = options.name;
  server.command = own_path();
  server.arguments = options.arguments;
  server.url = options.url;
  auto fields = client.fields(server);
  if (!fields)
    throw std::runtime_error(std::string(client.title) +
                             " only starts programs. Leave out --url. " + client.then);
  return Entry{client.table, options.name, std::move(*fields)};
}

std::string as_file(const Client& client, const Entry& entry) {
  return with_entry(client.format, "", entry);
}

// What the file was before the entry came, if nothing else has changed since.
std::optional<std::string> as_before(const Client& client, const ConfigFile& file,
                                     const Entry& entry, const std::string& without) {
  auto backup = file.backup();
  if (!backup || without_entry(client.format, *backup, entry.table, entry.name) != *backup)
    return std::nullopt;
  std::string then = with_entry(client.format, *backup, entry);
  if (without_entry(client.format, then, entry.table, entry.name) != without) return std::nullopt;
  return backup;
}

bool was_made_by_us(const Client& client, const Entry& entry, const std::string& without) {
  return without_entry(client.format, as_file(client, entry), entry.table, entry.name) == without;
}

int write(const Client& client, const ConfigFile& file, const Entry& entry) {
  std::string before = file.text().value_or("");
  std::string after = with_entry(client.format, before, entry);
  if (after == before) {
    std::printf("%s has it already.\n", file.path().c_str());
    return 0;
  }
  file.back_up();
  file.replace(after);
  std::printf("%s: %s is in %s.\n", client.title, entry.name.c_str(), file.path().c_str());
  if (file.text()) std::printf("What it was is in %s.\n", file.backup_path().c_str());
  std::printf("%s\n", client.then);
  return 0;
}

int remove(const Client& client, const ConfigFile& file, const Entry& entry) {
  std::string before = file.text().value_or("");
  std::string after = without_entry(client.format, before, entry.table, entry.name);
  if (after == before) {
    std::printf("%s is not in %s.\n", entry.name.c_str(), file.path().c_str());
    return 0;
  }
  if (auto original = as_before(client, file, entry, after)) {
    file.replace(*original);
    file.remove_backup();
  } else if (!file.backup() && was_made_by_us(client, entry, after)) {
    file.remove();
  } else {
    // A backup that is there has what the entry replaced: somebody's own of the same name, say.
    if (!file.backup()) file.back_up();
    file.replace(after);
  }
  std::printf("%s: %s is no longer in %s.\n", client.title, entry.name.c_str(),
              file.path().c_str());
  return 0;
}

int explain(const std::exception& failure, const std::string& what, const std::string& advice) {
  std::fprintf(stderr, "pykeep: %s: %s. Nothing was changed.\n%s", what.c_str(), failure.what(),
               advice.c_str());
  return 1;
}

}  // namespace

int client_config(const Options& options) {
  const ClientConfigOptions& wanted = options.client_config;
  const Client& client = *client_config::find_client(wanted.client);
  fs::path path = wanted.file.empty() ? default_file(client) : fs::path(wanted.file);
  if (wanted.remove) {
    Entry any{client.table, wanted.name, {}};
    try {
      return remove(client, ConfigFile(path), any);
    } catch (const client_config::EditError& unclear) {
      return explain(unclear, path, "Take the entry out by hand.\n");
    }
  }
  Entry entry = entry_for(client, wanted);
  if (wanted.url.empty()) warn_of_cache(own_path());
  if (!wanted.write) {
    std::fprintf(stderr, "For %s; --write puts it there.\n", path.c_str());
    std::fputs(as_file(client, entry).c_str(), stdout);
    return 0;
  }
  try {
    return write(client, ConfigFile(path), entry);
  } catch (const client_config::EditError& unclear) {
    return explain(unclear, path, "Add this by hand:\n" + as_file(client, entry));
  }
}

}  // namespace app
