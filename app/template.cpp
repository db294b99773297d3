#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/thread_pool.hpp>
#include <boost/process/args.hpp>
#include <boost/process/child.hpp>
#include <boost/process/exe.hpp>
#include <boost/process/io.hpp>
#include <boost/process/pipe.hpp>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "app/backends.hpp"
#include "app/commands.hpp"
#include "async/task_group.hpp"
#include "embedded/template_files.hpp"
#include "sandbox/local/backend.hpp"
#include "sandbox/local/image_record.hpp"
#include "sandbox/local/kernel_package.hpp"
#include "sandbox/local/templates.hpp"
#include "tools/identifiers.hpp"

namespace app {

namespace fs = std::filesystem;
namespace json = boost::json;
namespace process = boost::process;

namespace {

struct BuildError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string joined(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : " ") + word;
  return line;
}

// Runs a program to its end; what it says goes to our stderr. Returns its last line of stdout.
std::string run_program(const std::vector<std::string>& command) {
  std::fprintf(stderr, "+ %s\n", joined(command).c_str());
  std::vector<std::string> arguments(command.begin() + 1, command.end());
  process::ipstream out;
  std::string last;
  process::child child(process::exe = command.front(), process::args = arguments,
                       process::std_in<process::null, process::std_out> out);
  for (std::string line; std::getline(out, line);) {
    // pip's, of each package that the lockfile has for other systems.
    if (line.starts_with("Ignoring ") && line.find(": markers ") != line.npos) continue;
    if (!last.empty()) std::fprintf(stderr, "%s\n", last.c_str());
    last = line;
  }
  child.wait();
  if (child.exit_code() != 0)
    throw BuildError("`" + joined(command) + "` failed with exit code " +
                     std::to_string(child.exit_code()) + "; what it said stands above");
  return last;
}

fs::path write_embedded(const fs::path& directory, std::string_view name) {
  for (const embedded::File& file : embedded::template_files()) {
    if (file.name != name) continue;
    std::ofstream out(directory / name, std::ios::binary);
    out << file.text;
    if (!out.flush()) throw BuildError("cannot write " + (directory / name).string());
    return directory / name;
  }
  throw std::logic_error("no embedded file " + std::string(name));
}

fs::path interpreter(const Options& options) {
  auto python = sandbox::local::find_python(options.python);
  if (!python)
    throw BuildError(options.python.empty()
                         ? "there is no python3 on this machine. Install one (Debian, Ubuntu: "
                           "apt-get install python3 python3-venv) or name one with --python"
                         : "there is no interpreter at " + options.python);
  return *python;
}

void make_environment(const Options& options, const fs::path& directory) {
  std::vector<std::string> create = {interpreter(options), "-m", "venv"};
  if (options.system_packages) create.push_back("--system-site-packages");
  if (options.system_packages) create.push_back("--without-pip");
  create.push_back(directory);
  try {
    run_program(create);
  } catch (const BuildError& failure) {
    throw BuildError(std::string(failure.what()) +
                     ". On Debian and Ubuntu the module venv is in the package python3-venv");
  }
  if (options.system_packages) return;
  std::string python = directory / "bin" / "python3";
  std::vector<std::string> install = {
      python, "-I", "-m", "pip", "install", "--no-input", "--disable-pip-version-check"};
  if (options.requirements.empty()) {
    install.push_back("--require-hashes");
    install.push_back("--only-binary=:all:");
  }
  install.push_back("-r");
  install.push_back(options.requirements.empty()
                        ? write_embedded(directory, "requirements.lock").string()
                        : options.requirements);
  run_program(install);
}

std::string describe(const json::object& report) {
  std::string text = "Python " + std::string(report.at("python").as_string());
  for (const auto& entry : report.at("packages").as_object())
    if (entry.value().is_string())
      text += ", " + std::string(entry.key()) + " " + std::string(entry.value().as_string());
  return text;
}

std::string warm_up(const Options& options, const fs::path& directory) {
  std::string python = directory / "bin" / "python3";
  // The kernel's own files are given along for their bytecode: no sandbox can write it there.
  fs::path kernel = sandbox::local::install_kernel_package(options.state_directory / "kernel");
  std::string last = run_program({python, "-I", write_embedded(directory, "warm_up.py"), kernel});
  boost::system::error_code malformed;
  json::value report = json::parse(last, malformed);
  if (malformed || !report.is_object()) throw BuildError("the warm-up gave no report");
  json::object& fields = report.as_object();
  std::string description = describe(fields);
  fields["description"] = description;
  std::ofstream out(directory / "template.json");
  out << json::serialize(report) << "\n";
  if (!out.flush()) throw BuildError("cannot write to " + directory.string());
  return description;
}

async::awaitable<void> bake(boost::asio::thread_pool& pool, const Options& options,
                            sandbox::Template python) {
  sandbox::local::BackendOptions local;
  local.kernel_root = options.state_directory / "kernel";
  local.start_limit = options.start_limit;
  try {
    auto executor = co_await boost::asio::this_coro::executor;
    auto image = co_await sandbox::local::bake(executor, pool, local, python);
    std::fprintf(stderr, "+ made the image that sessions start from: %s\n", image.c_str());
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "pykeep: no image could be made, sessions will start cold: %s\n",
                 failure.what());
  }
}

// Sessions work without it, only slower.
void try_to_bake(const Options& options, const fs::path& directory) {
  if (options.no_images) return;
  boost::asio::io_context io(1);
  boost::asio::thread_pool pool(1);
  async::TaskGroup tasks(io.get_executor());
  tasks.spawn(bake(pool, options, sandbox::local::Templates(directory).find(directory)));
  io.run();
}

// Whether a frozen session counts on what is in this environment.
bool is_needed(const fs::path& environment, const fs::path& state) {
  std::string prefix = environment.string() + "/";
  for (const char* kind : {"sessions", "snapshots"}) {
    std::error_code failed;
    fs::recursive_directory_iterator entry(state / kind, failed), end;
    for (; !failed && entry != end; entry.increment(failed)) {
      if (entry->path().filename() == "workspace") entry.disable_recursion_pending();
      if (entry->path().filename() != sandbox::local::kImageRecord) continue;
      try {
        auto record = sandbox::local::read_record(entry->path().parent_path());
        if (record.python.starts_with(prefix)) return true;
      } catch (const sandbox::ThawError&) {
        continue;  // it cannot be thawed anyway
      }
    }
  }
  return false;
}

void remove_if_unneeded(const fs::path& environment, const Options& options) {
  std::error_code failed;
  if (is_needed(environment, options.state_directory))
    std::fprintf(stderr, "+ kept for the sessions and snapshots that need it: %s\n",
                 environment.c_str());
  else
    fs::remove_all(environment, failed);
}

// Those of earlier builds that were kept, once nothing needs them. One that is being built right
// now is no older than that.
void remove_old(const fs::path& root, const Options& options, const std::string& target) {
  constexpr auto kLongestBuild = std::chrono::hours(1);
  std::vector<fs::path> old;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(root, failed)) {
    std::string name = entry.path().filename();
    if (!name.starts_with("." + options.template_name + "-") || name == target) continue;
    auto built = fs::last_write_time(entry.path() / "template.json", failed);
    if (!failed && built < fs::file_time_type::clock::now() - kLongestBuild)
      old.push_back(entry.path());
  }
  for (const fs::path& environment : old) remove_if_unneeded(environment, options);
}

// The name is a link, so that a new build takes the place of the old one in one step; sessions that
// run keep the one they started with.
void publish(const fs::path& root, const Options& options, const std::string& target) {
  const std::string& name = options.template_name;
  fs::path link = root / name, aside = root / ("." + name + ".new");
  std::error_code failed;
  fs::path old = fs::read_symlink(link, failed);
  fs::remove(aside, failed);
  fs::create_symlink(target, aside, failed);
  if (!failed) fs::rename(aside, link, failed);
  if (failed) throw BuildError("cannot publish " + link.string() + ": " + failed.message());
  if (!old.empty() && old != target) remove_if_unneeded(root / old, options);
  remove_old(root, options, target);
}

}  // namespace

int template_build(const Options& options) {
  fs::path root = options.state_directory / "templates";
  std::error_code failed;
  make_state_directory(options);
  fs::create_directories(root, failed);
  if (failed) {
    std::fprintf(stderr, "pykeep: cannot create %s: %s\n", root.c_str(), failed.message().c_str());
    return 1;
  }
  std::string target = "." + options.template_name + "-" + tools::random_id().substr(0, 10);
  fs::path directory = root / target;
  try {
    make_environment(options, directory);
    std::string description = warm_up(options, directory);
    try_to_bake(options, directory);
    publish(root, options, target);
    std::printf("%s: %s\n", options.template_name.c_str(), description.c_str());
    return 0;
  } catch (const std::exception& failure) {
    fs::remove_all(directory, failed);
    std::fprintf(stderr, "pykeep: the template was not built, and nothing was changed: %s.\n",
                 failure.what());
    return 1;
  }
}

int template_list(const Options& options) {
  sandbox::local::Templates templates(options.state_directory / "templates");
  for (const auto& python : templates.built())
    std::printf("%s: %s\n", python.name.c_str(), python.description.c_str());
  return 0;
}

}  // namespace app
