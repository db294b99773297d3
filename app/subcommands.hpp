#pragma once

#include <CLI/CLI.hpp>

#include "app/options.hpp"

namespace app {

// The commands and what each of them alone takes; `http` excepted, which has a table of options.
// `app` and `options` outlive the parsing.
void add_commands(CLI::App& app, Options& options);

// Which of them was given, once parsed.
Command command_of(const CLI::App& app);

}  // namespace app
