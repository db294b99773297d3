#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <vector>

#include "tools/sessions.hpp"
#include "tools/tools.hpp"

namespace app {

// Everything the command line and the environment can say, once checked.
struct Options {
  std::filesystem::path state_directory;  // absolute
  std::string log_level = "warning";
  std::vector<std::string> upload_roots;
  std::uint64_t upload_max = 256ull << 20;
  std::chrono::seconds start_limit{60};
  tools::SessionPolicy sessions;

  // Of single commands.
  bool json = false;                                            // doctor
  std::string code, file;                                       // run
  std::string output_directory;                                 // run
  double timeout = 600;                                         // run, seconds
  bool read_stdin = false;                                      // run
  std::string template_name = "default", python, requirements;  // template build
  bool system_packages = false;                                 // template build
};

enum class Command { stdio, run, doctor, template_build, template_list };

struct Invocation {
  Command command = Command::stdio;
  Options options;
};

// Reads argv and PYKEEP_… from the environment. Prints help, a version or what is wrong and ends
// the program: exit code 0, or 2 for a wrong use.
Invocation parse(int argc, char** argv);

}  // namespace app
