#include "sandbox/local/bubblewrap.hpp"

#include <unistd.h>

#include "sandbox/local/environment.hpp"

namespace sandbox::local {

namespace {

class Options {
 public:
  template <class... Words>
  void add(const Words&... words) {
    ((bytes_.append(words), bytes_.push_back('\0')), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

void add_namespaces(Options& options, const BwrapInput& input) {
  // The first means "user and cgroup namespace if possible"; these two are not optional here.
  options.add("--unshare-all");
  options.add("--unshare-user");
  if (input.network) options.add("--share-net");
  std::string id = std::to_string(kInsideId);
  options.add("--uid", id);
  options.add("--gid", id);
  options.add("--hostname", "pykeep");
  options.add("--cap-drop", "ALL");
  options.add("--new-session");
  options.add("--die-with-parent");
}

void add_root(Options& options, const BwrapInput& input) {
  std::string tmp_size = std::to_string(input.limits.tmp);
  options.add("--proc", "/proc");
  options.add("--dev", "/dev");
  options.add("--perms", "1777", "--size", tmp_size, "--tmpfs", "/dev/shm");
  options.add("--remount-ro", "/dev");
  options.add("--perms", "1777", "--size", tmp_size, "--tmpfs", "/tmp");
  options.add("--perms", "0700", "--dir", kHome);
  int descriptor = kFirstFile;
  for (const GeneratedFile& file : input.view.files)
    options.add("--perms", "0444", "--file", std::to_string(descriptor++), file.path);
  for (const Link& link : input.view.links) options.add("--symlink", link.target, link.path);
  for (std::size_t index = 0; index < input.view.binds.size(); ++index) {
    const Bind& bind = input.view.binds[index];
    options.add(bind.writable ? "--bind" : "--ro-bind",
                input.staged ? staged_path(index) : bind.source.string(), bind.target);
  }
  options.add("--remount-ro", "/");
  options.add("--chdir", kWorkspace);
}

struct Known {
  const char* words;
  const char* remedy;
};

constexpr Known kKnown[] = {
    {"No permissions to creat",
     "This system does not let bwrap make user namespaces. Run `pykeep doctor` for the exact fix."},
    {"setting up uid map",
     "User namespaces are restricted here (AppArmor, on Ubuntu). Run `pykeep doctor` for the fix."},
    {"loopback: Failed RTM_NEWADDR",
     "User namespaces are restricted here (AppArmor, on Ubuntu). Run `pykeep doctor` for the fix."},
    {"Can't mount proc",
     "/proc is masked here, as in most containers: start the container with "
     "`--security-opt systempaths=unconfined`, or run pykeep outside of it."},
    {"Unknown option", "This bubblewrap is too old: version 0.7 or newer is needed."},
    {"execvp",
     "The interpreter is not visible inside the sandbox: rebuild the template with "
     "`pykeep template build`."},
    {"max_user_namespaces", "Allow user namespaces: `sudo sysctl user.max_user_namespaces=15000`."},
};

}  // namespace

std::string find_bubblewrap() {
  for (const char* path : {"/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap"})
    if (access(path, X_OK) == 0) return path;
  throw StartError(
      "bubblewrap is not installed, and nothing runs without it: `sudo apt-get install bubblewrap` "
      "(dnf, pacman and zypper call it bubblewrap too).");
}

std::string bwrap_options(const BwrapInput& input) {
  Options options;
  add_namespaces(options, input);
  options.add("--json-status-fd", std::to_string(kStatus));
  options.add("--block-fd", std::to_string(kBlock));
  options.add("--add-seccomp-fd", std::to_string(kAllowedCalls));
  options.add("--add-seccomp-fd", std::to_string(kDeniedRequests));
  options.add("--clearenv");
  for (const auto& [name, value] : input.environment) options.add("--setenv", name, value);
  add_root(options, input);
  return options.take();
}

std::string explain_bwrap(const std::string& words) {
  std::string text = words.empty() ? "bwrap ended without a word" : words;
  while (!text.empty() && text.back() == '\n') text.pop_back();
  for (const Known& known : kKnown)
    if (words.find(known.words) != words.npos) return text + "\n" + known.remedy;
  return text;
}

}  // namespace sandbox::local
