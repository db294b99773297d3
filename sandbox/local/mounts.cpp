#include "sandbox/local/mounts.hpp"

#include <algorithm>
#include <system_error>

namespace sandbox::local {

namespace {

namespace fs = std::filesystem;

// Not /usr as a whole: /usr/local and /usr/src may hold what the operator put there.
constexpr const char* kSystem[] = {"/usr/bin",   "/usr/lib",    "/usr/lib32",
                                   "/usr/lib64", "/usr/libx32", "/usr/share"};
constexpr const char* kMerged[] = {"bin", "lib", "lib32", "lib64", "libx32"};
// matplotlibrc: Debian's matplotlib does not start without it.
constexpr const char* kEtc[] = {"/etc/ld.so.cache", "/etc/localtime", "/etc/fonts",
                                "/etc/alternatives", "/etc/matplotlibrc"};
constexpr const char* kEtcNetwork[] = {"/etc/resolv.conf", "/etc/ssl/certs", "/etc/ca-certificates",
                                       "/etc/gai.conf",    "/etc/services",  "/etc/protocols"};
constexpr const char* kNeverVisible[] = {"/proc",      "/dev",      "/sys",
                                         "/workspace", "/tmp/home", "/etc/shadow"};

bool is_within(const fs::path& path, const fs::path& directory) {
  auto [end, rest] = std::mismatch(directory.begin(), directory.end(), path.begin(), path.end());
  return end == directory.end();
}

void add_if_there(View& view, const char* path) {
  std::error_code error;
  fs::file_status status = fs::status(path, error);
  if (fs::exists(status))
    view.binds.push_back(
        {.source = path, .target = path, .is_directory = fs::is_directory(status)});
}

void add_system(View& view) {
  for (const char* path : kSystem) add_if_there(view, path);
  for (const std::string name : kMerged) {
    std::error_code error;
    if (fs::is_symlink("/" + name, error))
      view.links.push_back({.target = "usr/" + name, .path = "/" + name});
    else
      add_if_there(view, ("/" + name).c_str());
  }
}

void add_etc(View& view, bool network) {
  for (const char* path : kEtc) add_if_there(view, path);
  if (network)
    for (const char* path : kEtcNetwork) add_if_there(view, path);
  std::string id = std::to_string(kInsideId);
  view.files = {
      {"/etc/passwd", "user:x:" + id + ":" + id + ":user:/tmp/home:/bin/sh\n"},
      {"/etc/group", "user:x:" + id + ":\n"},
      {"/etc/hosts", "127.0.0.1 localhost pykeep\n::1 localhost pykeep\n"},
      {"/etc/nsswitch.conf",
       std::string("passwd: files\ngroup: files\nhosts: files") + (network ? " dns\n" : "\n")},
  };
}

Bind directory(const fs::path& source, std::string target, const char* what) {
  std::error_code error;
  if (!source.is_absolute() || !fs::is_directory(source, error))
    throw StartError(std::string(what) + " " + source.string() +
                     ": no such directory. Check the path, and that the server may read it.");
  return {.source = source, .target = std::move(target)};
}

void add_template(View& view, const Template& python) {
  for (const fs::path& path : python.visible) {
    fs::path inside = path.lexically_normal();
    if (!inside.has_filename() && inside.has_relative_path()) inside = inside.parent_path();
    for (const char* hidden : kNeverVisible)
      if (is_within(hidden, inside) || is_within(inside, hidden))
        throw StartError("template \"" + python.name + "\" asks to show " + inside.string() +
                         " in the sandbox, which is not allowed: name the interpreter's own "
                         "directories only.");
    bool shown = std::any_of(view.binds.begin(), view.binds.end(),
                             [&](const Bind& bind) { return is_within(inside, bind.target); });
    if (!shown) view.binds.push_back(directory(inside, inside.string(), "template directory"));
  }
}

}  // namespace

View visible_in(const SandboxSpec& spec, const fs::path& kernel_package) {
  View view;
  add_system(view);
  add_etc(view, spec.network);
  add_template(view, spec.python);
  if (!kernel_package.empty())
    view.binds.push_back(directory(kernel_package, kKernelPackage, "kernel package"));
  Bind workspace = directory(spec.workspace, kWorkspace, "workspace");
  workspace.writable = true;
  view.binds.push_back(std::move(workspace));
  return view;
}

}  // namespace sandbox::local
