#include "sandbox/remove_tree.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace sandbox {

namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

// By an O_PATH descriptor, since chmod(2) would follow a link and needs no permission on the
// target.
void make_accessible(int parent, const char* name) {
  int fd = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return;
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  chmod(path.c_str(), 0700);
  close(fd);
}

Directory open_directory(int parent, const char* name) {
  make_accessible(parent, name);
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return nullptr;
  Directory directory(fdopendir(fd));
  if (!directory) close(fd);
  return directory;
}

// Calls `visit` with the descriptor and each name in it.
void for_each_name(DIR* directory, const std::function<void(int, const char*)>& visit) {
  rewinddir(directory);
  while (const dirent* entry = readdir(directory)) {
    std::string_view name(entry->d_name);
    if (name != "." && name != "..") visit(dirfd(directory), entry->d_name);
  }
}

bool unlink_file(int parent, const char* name) {
  return unlinkat(parent, name, 0) == 0 || errno == ENOENT;
}

// Takes the tree apart from the top: the directories in a directory move up beside it, so that none
// is ever more than one level down.
class Flattener {
 public:
  explicit Flattener(DIR* top) : top_(top) {
    std::uint64_t random = 0;
    (void)!getrandom(&random, sizeof random, 0);
    prefix_ = ".pykeep-" + std::to_string(random) + "-";  // nothing the sandbox made is called so
  }

  // Until a pass finds nothing more to do. A directory that changes while it is read may show the
  // changes or not (readdir(3)), so one pass is not enough.
  void run() {
    do {
      progress_ = false;
      for_each_name(top_, [this](int parent, const char* name) { remove(parent, name); });
    } while (progress_);
  }

 private:
  void remove(int top, const char* name) {
    if (unlink_file(top, name)) {
      progress_ = true;
      return;
    }
    Directory directory = open_directory(top, name);
    if (!directory) return;
    for_each_name(directory.get(), [this, top](int parent, const char* child) {
      if (unlink_file(parent, child)) return;
      make_accessible(parent, child);  // its ".." will be written
      std::string moved = prefix_ + std::to_string(++count_);
      renameat(parent, child, top, moved.c_str());
    });
    if (unlinkat(top, name, AT_REMOVEDIR) == 0) progress_ = true;
  }

  DIR* top_;
  std::string prefix_;
  std::uint64_t count_ = 0;
  bool progress_ = false;
};

}  // namespace

bool remove_tree(const std::filesystem::path& directory) {
  if (Directory top = open_directory(AT_FDCWD, directory.c_str())) Flattener(top.get()).run();
  return rmdir(directory.c_str()) == 0 || errno == ENOENT;
}

}  // namespace sandbox
