#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <string>

namespace app {

// Options of one command: each is `--name` and, in the environment, PYKEEP_NAME; --help says its
// default. What is put in is written to when the command line is parsed.
class OptionTable {
 public:
  explicit OptionTable(CLI::App& app) : app_(app) {}

  template <class T>
  CLI::Option* add(const std::string& name, T& value, const std::string& help) {
    return app_.add_option("--" + name, value, help)
        ->envname(environment_name(name))
        ->capture_default_str();
  }
  void flag(const std::string& name, bool& value, const std::string& help);
  // In bytes: "2GiB", or a plain number of them.
  void size(const std::string& name, std::uint64_t& value, const std::string& help);
  template <class Duration>
  void seconds(const std::string& name, Duration& value, const std::string& help,
               std::int64_t least = 1) {
    auto read = [&value](const std::int64_t& count) { value = std::chrono::seconds(count); };
    app_.add_option_function<std::int64_t>("--" + name, read, help)
        ->envname(environment_name(name))
        ->check(CLI::Range(least, std::int64_t{10} * 365 * 86400))
        ->default_str(std::to_string(std::chrono::seconds(value).count()))
        ->type_name("SECONDS");
  }

 private:
  static std::string environment_name(std::string option);

  CLI::App& app_;
};

}  // namespace app
