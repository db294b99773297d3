#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

#include "sandbox/local/process.hpp"
#include "sandbox/local/workspace.hpp"

namespace sandbox::local {

namespace {

constexpr std::uint64_t kLeast = 4096;  // empty files cost inodes
constexpr std::size_t kDeepest = 64;    // each level holds a descriptor

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

Directory open_directory(int parent, const char* name) {
  Fd fd(openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  Directory directory(fd ? fdopendir(fd.get()) : nullptr);
  if (directory) fd.release();
  return directory;
}

// What has gone, or cannot be opened, while we look is not counted.
std::uint64_t measure(int root, std::uint64_t enough) {
  std::uint64_t total = 0;
  std::set<ino_t> several_names;
  std::vector<Directory> open;
  open.push_back(open_directory(root, "."));
  while (!open.empty() && total < enough) {
    const dirent* entry = open.back() ? readdir(open.back().get()) : nullptr;
    if (!entry) {
      open.pop_back();
      continue;
    }
    std::string_view name(entry->d_name);
    if (name == "." || name == "..") continue;
    struct stat status {};
    int parent = dirfd(open.back().get());
    if (fstatat(parent, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == -1) continue;
    bool is_directory = S_ISDIR(status.st_mode);
    if (!is_directory && status.st_nlink > 1 && !several_names.insert(status.st_ino).second)
      continue;
    total += std::max(kLeast, static_cast<std::uint64_t>(status.st_blocks) * 512);
    if (!is_directory) continue;
    if (open.size() == kDeepest) return enough;
    open.push_back(open_directory(parent, entry->d_name));
  }
  return std::min(total, enough);
}

}  // namespace

awaitable<std::uint64_t> disk_usage(boost::asio::thread_pool& pool, int directory,
                                    std::uint64_t enough) {
  auto work = [directory, enough] { return measure(directory, enough); };
  co_return co_await async::on_pool(pool, std::move(work));
}

}  // namespace sandbox::local
