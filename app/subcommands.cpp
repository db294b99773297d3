#include "app/subcommands.hpp"

#include <utility>

namespace app {

namespace {

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
}

}  // namespace

void add_commands(CLI::App& app, Options& options) {
  app.add_subcommand("stdio", "Serve MCP over stdin and stdout (the default)");
  add_run(app, options);
  add_template(app, options);
  add_stored(app, options);
  app.add_subcommand("doctor", "Say what isolation this machine gives")
      ->add_flag("--json", options.json, "for programs");
}

Command command_of(const CLI::App& app) {
  if (app.got_subcommand("snapshots")) {
    const CLI::App* group = app.get_subcommand("snapshots");
    if (group->got_subcommand("show")) return Command::snapshots_show;
    return group->got_subcommand("delete") ? Command::snapshots_delete : Command::snapshots_list;
  }
  if (app.got_subcommand("sessions"))
    return app.get_subcommand("sessions")->got_subcommand("close") ? Command::sessions_close
                                                                   : Command::sessions_list;
  if (app.got_subcommand("run")) return Command::run;
  if (app.got_subcommand("http")) return Command::http;
  if (app.got_subcommand("doctor")) return Command::doctor;
  if (!app.got_subcommand("template")) return Command::stdio;
  bool build = app.get_subcommand("template")->got_subcommand("build");
  return build ? Command::template_build : Command::template_list;
}

}  // namespace app
