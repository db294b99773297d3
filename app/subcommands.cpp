#include "app/subcommands.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

#include "client_config/clients.hpp"

namespace app {

namespace {

// As it can be a key in JSON, TOML and YAML alike.
std::string is_plain_name(const std::string& name) {
  auto plain = [](unsigned char c) { return std::isalnum(c) || c == '-' || c == '_'; };
  bool fits = !name.empty() && name.size() <= 64 && std::ranges::all_of(name, plain);
  return fits ? "" : "expected letters, digits, - and _: " + name;
}

void add_run(CLI::App& app, Options& options) {
  CLI::App* run = app.add_subcommand("run", "Run code in a fresh sandbox; charts go to files");
  run->add_option("-c", options.code, "the code")->type_name("CODE");
  run->add_option("file", options.file, "a file with the code; - reads it from stdin");
  run->add_option("--output", options.output_directory, "directory for charts (default: .)");
  run->add_option("--timeout", options.timeout, "seconds until the code is interrupted")
      ->check(CLI::Range(0.1, 86400.0));
  run->add_flag("--stdin", options.read_stdin, "let input() read from our stdin");
}

void add_template(CLI::App& app, Options& options) {
  CLI::App* group = app.add_subcommand("template", "Python environments for sessions");
  group->require_subcommand(1);
  CLI::App* build = group->add_subcommand("build", "Make one from pinned, hashed packages");
  build->add_option("--name", options.template_name, "its name")->capture_default_str();
  build->add_option("--python", options.python, "interpreter (default: /usr/bin/python3)");
  build->add_option("--requirements", options.requirements, "a requirements file of your own");
  build->add_flag("--system", options.system_packages,
                  "use the distribution's packages; needs no network");
  group->add_subcommand("list", "Those that were built");
}

void add_stored(CLI::App& app, Options& options) {
  CLI::App* snapshots = app.add_subcommand("snapshots", "Snapshots of sessions");
  snapshots->require_subcommand(1);
  snapshots->add_subcommand("list", "All of them");
  for (auto [name, help] : {std::pair("show", "One of them"), std::pair("delete", "Delete one")})
    snapshots->add_subcommand(name, help)
        ->add_option("id", options.stored_id, "its id")
        ->required();
  CLI::App* sessions = app.add_subcommand("sessions", "Sessions on disk");
  sessions->require_subcommand(1);
  sessions->add_subcommand("list", "All of them");
  sessions->add_subcommand("close", "Delete one that nobody runs")
      ->add_option("id", options.stored_id, "its handle")
      ->required();
  CLI::App* whole = sessions->add_subcommand("export", "One as a notebook or a script");
  whole->add_option("session", options.stored_id, "its handle or name")->required();
  whole->add_option("--format", options.format, "ipynb or py")
      ->check(CLI::IsMember({"ipynb", "py"}))
      ->capture_default_str();
  whole->add_option("-o,--output", options.output, "file to write (default: stdout)");
}

void add_client_config(CLI::App& app, Options& options) {
  ClientConfigOptions& wanted = options.client_config;
  std::vector<std::string> ids;
  for (const auto& client : ::client_config::clients()) ids.emplace_back(client.id);
  CLI::App* config = app.add_subcommand(
      "client-config", "Print an MCP client's entry for this server, or put it into its file");
  config->fallthrough(false);  // options of the server it starts come behind --
  config->add_option("client", wanted.client)->required()->check(CLI::IsMember(ids));
  auto* write = config->add_flag("--write", wanted.write, "put it into the client's file");
  config->add_flag("--remove", wanted.remove, "take it out again")->excludes(write);
  config->add_option("--file", wanted.file, "another file than the client's usual one");
  config->add_option("--name", wanted.name, "of the entry")
      ->check(is_plain_name)
      ->capture_default_str();
  config->add_option("--url", wanted.url, "of a pykeep that serves HTTP: https://host/mcp");
  config->add_option("arguments", wanted.arguments, "behind --: what the client starts pykeep with")
      ->excludes("--url");
}

}  // namespace

void add_commands(CLI::App& app, Options& options) {
  app.add_subcommand("stdio", "Serve MCP over stdin and stdout (the default)");
  add_run(app, options);
  add_template(app, options);
  add_stored(app, options);
  add_client_config(app, options);
  app.add_subcommand("doctor", "Say what isolation this machine gives")
      ->add_flag("--json", options.json, "for programs");
}

Command command_of(const CLI::App& app) {
  if (app.got_subcommand("snapshots")) {
    const CLI::App* group = app.get_subcommand("snapshots");
    if (group->got_subcommand("show")) return Command::snapshots_show;
    return group->got_subcommand("delete") ? Command::snapshots_delete : Command::snapshots_list;
  }
  if (app.got_subcommand("sessions")) {
    const CLI::App* group = app.get_subcommand("sessions");
    if (group->got_subcommand("export")) return Command::sessions_export;
    return group->got_subcommand("close") ? Command::sessions_close : Command::sessions_list;
  }
  if (app.got_subcommand("client-config")) return Command::client_config;
  if (app.got_subcommand("run")) return Command::run;
  if (app.got_subcommand("http")) return Command::http;
  if (app.got_subcommand("doctor")) return Command::doctor;
  if (!app.got_subcommand("template")) return Command::stdio;
  bool build = app.get_subcommand("template")->got_subcommand("build");
  return build ? Command::template_build : Command::template_list;
}

}  // namespace app
