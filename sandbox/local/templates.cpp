#include "sandbox/local/templates.hpp"

#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "schemas/codec.hpp"

namespace sandbox::local {

namespace fs = std::filesystem;
namespace json = boost::json;

namespace {

constexpr const char* kBuild =
    "Run `pykeep template build` to make one, or name another with --template.";

bool is_executable(const fs::path& path) {
  std::error_code absent;
  return fs::is_regular_file(path, absent) && access(path.c_str(), X_OK) == 0;
}

// The value of a key of pyvenv.cfg (PEP 405).
std::string configured(const fs::path& pyvenv, std::string_view key) {
  std::ifstream file(pyvenv);
  for (std::string line; std::getline(file, line);) {
    std::size_t equals = line.find('=');
    if (equals == line.npos) continue;
    auto trimmed = [](std::string text) {
      text.erase(0, text.find_first_not_of(" \t"));
      return text.erase(text.find_last_not_of(" \t\r") + 1);
    };
    if (trimmed(line.substr(0, equals)) == key) return trimmed(line.substr(equals + 1));
  }
  return {};
}

// Where an interpreter's library is: <prefix>/bin/python3 -> <prefix>.
fs::path prefix_of(const fs::path& interpreter) {
  std::error_code absent;
  return fs::canonical(interpreter, absent).parent_path().parent_path();
}

// /usr is in every sandbox. Anything else must look like a Python's own directory: a whole home or
// root directory is never shown because an interpreter happens to lie in it.
void show(Template& python, const fs::path& prefix) {
  if (prefix.empty() || prefix == "/usr" || prefix == "/") return;
  bool known = std::ranges::find(python.visible, prefix) != python.visible.end();
  if (known) return;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(prefix / "lib", absent))
    if (entry.path().filename().string().starts_with("python3"))
      return python.visible.push_back(prefix);
  throw StartError("The Python at " + prefix.string() +
                   " cannot be used: it has no lib/python3 directory of its own.");
}

Template from_environment(std::string name, const fs::path& directory) {
  Template python;
  python.name = std::move(name);
  std::error_code absent;
  fs::path real = fs::canonical(directory, absent);
  python.python = real / "bin" / "python3";
  if (!is_executable(python.python)) {
    bool built = python.name.find('/') == python.name.npos;
    std::string broken = "The template \"" + python.name + "\" at " + directory.string() +
                         " is broken: " + python.python.string() + " cannot be run. ";
    throw StartError(
        broken + (built ? "Build it again with `pykeep template build --name " + python.name + "`."
                        : kBuild));
  }
  python.visible.push_back(real);
  show(python, prefix_of(configured(real / "pyvenv.cfg", "home") + "/python3"));
  show(python, prefix_of(python.python));
  return python;
}

Template from_interpreter(std::string name, const fs::path& interpreter) {
  Template python;
  python.name = std::move(name);
  std::error_code absent;  // where it really is: a link to it may not be visible inside
  python.python = fs::canonical(interpreter, absent);
  show(python, prefix_of(interpreter));
  return python;
}

std::string described(const fs::path& environment) {
  std::ifstream file(environment / "template.json");
  std::stringstream text;
  text << file.rdbuf();
  boost::system::error_code malformed;
  json::value value = json::parse(text.str(), malformed);
  const json::object* fields = malformed ? nullptr : value.if_object();
  const json::value* description = fields ? fields->if_contains("description") : nullptr;
  return description && description->is_string() ? std::string(description->get_string()) : "";
}

bool is_name(const std::string& name) {
  auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  };
  return !name.empty() && name.size() <= 64 && name[0] != '.' && std::ranges::all_of(name, fits);
}

}  // namespace

Templates::Templates(fs::path root) : root_(std::move(root)) {}

Template Templates::find(const std::string& name) const {
  std::error_code absent;
  if (name.find('/') != name.npos) {
    fs::path path = fs::absolute(name, absent);
    if (fs::exists(path / "pyvenv.cfg", absent)) return from_environment(name, path);
    fs::path around = path.parent_path().parent_path();  // of <environment>/bin/python3
    if (fs::exists(around / "pyvenv.cfg", absent)) return from_environment(name, around);
    if (is_executable(path)) return from_interpreter(name, path);
    throw StartError("There is no Python environment at " + path.string() + ". " + kBuild);
  }
  if (name.empty()) {
    bool has_default = fs::exists(fs::symlink_status(root_ / "default", absent));
    return find(has_default ? "default" : "system");
  }
  if (name == "system") {
    auto python = find_python("");
    if (!python) throw StartError(std::string("There is no python3 on this machine. ") + kBuild);
    return from_interpreter(name, *python);
  }
  if (!is_name(name) || !fs::exists(fs::symlink_status(root_ / name, absent)))
    throw StartError("There is no template \"" + schemas::clipped(name) + "\". " + kBuild);
  Template python = from_environment(name, root_ / name);
  python.description = described(python.visible.front());
  return python;
}

std::vector<Template> Templates::built() const {
  std::vector<Template> all;
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(root_, absent)) {
    std::string name = entry.path().filename();
    if (!entry.is_symlink(absent) || !is_name(name)) continue;
    try {
      all.push_back(find(name));
    } catch (const StartError& broken) {
      Template python;
      python.name = name;
      python.description = broken.what();
      all.push_back(python);
    }
  }
  std::ranges::sort(all, {}, &Template::name);
  return all;
}

std::optional<fs::path> find_python(const std::string& given) {
  if (!given.empty()) {
    std::error_code absent;
    if (is_executable(given)) return fs::absolute(given, absent);
    return std::nullopt;
  }
  if (is_executable("/usr/bin/python3")) return fs::path("/usr/bin/python3");
  const char* path = std::getenv("PATH");
  std::stringstream directories(path ? path : "/usr/local/bin:/usr/bin:/bin");
  for (std::string directory; std::getline(directories, directory, ':');)
    if (!directory.empty() && is_executable(fs::path(directory) / "python3"))
      return fs::path(directory) / "python3";
  return std::nullopt;
}

}  // namespace sandbox::local
