#include "sandbox/local/environment.hpp"

#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace sandbox::local {

namespace {

int usable_processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> program_environment(const SandboxSpec& spec) {
  std::vector<std::pair<std::string, std::string>> all;
  std::string path = "/usr/bin:/bin";
  if (!spec.python.python.empty() && spec.python.python.parent_path() != "/usr/bin")
    path = spec.python.python.parent_path().string() + ":" + path;
  all.emplace_back("PATH", path);
  all.emplace_back("HOME", kHome);
  all.emplace_back("LANG", "C.UTF-8");
  all.emplace_back("LC_ALL", "C.UTF-8");
  if (const char* zone = std::getenv("TZ")) all.emplace_back("TZ", zone);
  for (char** entry = environ; entry && *entry; ++entry) {
    std::string_view variable(*entry);
    std::size_t name = variable.find('=');
    if (name != variable.npos && variable.starts_with("OPENBLAS_"))
      all.emplace_back(variable.substr(0, name), variable.substr(name + 1));
  }
  const char* threads = std::getenv("OMP_NUM_THREADS");
  all.emplace_back("OMP_NUM_THREADS", threads ? threads : std::to_string(usable_processors()));
  all.insert(all.end(), spec.environment.begin(), spec.environment.end());
  return all;
}

}  // namespace sandbox::local
