#include "sandbox/tree_size.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

namespace sandbox {

namespace {

constexpr std::uint64_t kLeast = 4096;
constexpr std::size_t kMostOpen = 32;

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

// Of the levels above the lowest kMostOpen only the place is kept. They are opened again from
// below.
struct Level {
  Directory open;
  long place = 0;
  dev_t device = 0;
  ino_t inode = 0;
};

bool open_at(Level& level, int from, const char* name) {
  int fd = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd == -1) return false;
  level.open.reset(fdopendir(fd));
  if (!level.open) close(fd);
  return level.open != nullptr;
}

class Walk {
 public:
  Walk(int root, std::uint64_t enough) : enough_(enough) { descend(root, "."); }

  std::uint64_t run() {
    while (!levels_.empty() && total_ < enough_) {
      const dirent* entry = readdir(levels_.back().open.get());
      if (entry)
        count(entry->d_name);
      else if (!ascend())
        break;
    }
    return std::min(total_, enough_);
  }

 private:
  void count(const char* name) {
    if (std::string_view(name) == "." || std::string_view(name) == "..") return;
    struct stat status {};
    int parent = dirfd(levels_.back().open.get());
    if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) == -1) return;
    bool is_directory = S_ISDIR(status.st_mode);
    bool counted = !is_directory && status.st_nlink > 1 &&
                   !several_names_.insert({status.st_dev, status.st_ino}).second;
    if (counted) return;
    total_ += std::max(kLeast, static_cast<std::uint64_t>(status.st_blocks) * 512);
    if (is_directory) descend(parent, name);
  }

  void descend(int parent, const char* name) {
    Level level;
    struct stat status {};
    if (!open_at(level, parent, name) || fstat(dirfd(level.open.get()), &status) == -1) return;
    level.device = status.st_dev;
    level.inode = status.st_ino;
    levels_.push_back(std::move(level));
    if (levels_.size() <= kMostOpen) return;
    Level& above = levels_[levels_.size() - 1 - kMostOpen];
    above.place = telldir(above.open.get());
    above.open.reset();
  }

  // False when the level above cannot be found again: the directory was moved meanwhile.
  bool ascend() {
    Level below = std::move(levels_.back());
    levels_.pop_back();
    if (levels_.empty() || levels_.back().open) return true;
    Level& level = levels_.back();
    struct stat status {};
    if (!open_at(level, dirfd(below.open.get()), "..") ||
        fstat(dirfd(level.open.get()), &status) == -1)
      return false;
    if (status.st_dev != level.device || status.st_ino != level.inode) return false;
    seekdir(level.open.get(), level.place);
    return true;
  }

  std::uint64_t enough_;
  std::uint64_t total_ = 0;
  std::vector<Level> levels_;
  std::set<std::pair<dev_t, ino_t>> several_names_;
};

}  // namespace

std::uint64_t tree_size(int directory, std::uint64_t enough) {
  return Walk(directory, enough).run();
}

}  // namespace sandbox
