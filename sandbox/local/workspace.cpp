#include "sandbox/local/workspace.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <optional>
#include <system_error>

#include "sandbox/local/beneath.hpp"
#include "sandbox/local/ids.hpp"
#include "sandbox/local/replace_file.hpp"

namespace sandbox::local {

struct WorkspaceFiles::Root {
  Fd directory;
  std::optional<uid_t> owner;
};

namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};

FileInfo info_of(const std::string& path, const struct stat& status) {
  FileInfo info;
  info.path = path == "." ? "" : printable(path);
  info.is_directory = S_ISDIR(status.st_mode);
  info.is_link = S_ISLNK(status.st_mode);
  info.size = S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
  info.modified = status.st_mtime;
  return info;
}

FileInfo stat_now(int root, const std::string& path) {
  Fd fd = open_beneath(root, path, O_PATH | O_NOFOLLOW);
  return info_of(path, status_of(fd, path));
}

// The names in a directory, sorted; at most `cap`, and whether those were all.
bool names_in(int root, const std::string& path, std::size_t cap, std::vector<std::string>& names) {
  Fd fd = open_beneath(root, path, O_RDONLY | O_DIRECTORY);
  std::unique_ptr<DIR, CloseDirectory> directory(fdopendir(fd.get()));
  if (!directory) fail(path, errno);
  fd.release();
  bool complete = true;
  while (const dirent* entry = readdir(directory.get())) {
    std::string name(entry->d_name);
    if (name == "." || name == ".." || is_unfinished(name)) continue;
    if (names.size() == cap) {
      complete = false;
      break;
    }
    names.push_back(std::move(name));
  }
  std::ranges::sort(names);
  return complete;
}

// Level by level, so that a cap leaves out what is deepest.
Listing list_now(int root, const std::string& path, int depth, std::size_t cap) {
  Listing listing;
  std::deque<std::pair<std::string, int>> pending = {{path, depth}};
  while (!pending.empty()) {
    auto [directory, left] = pending.front();
    pending.pop_front();
    std::vector<std::string> names;
    try {
      if (!names_in(root, directory, cap - listing.entries.size(), names)) listing.complete = false;
    } catch (const FileError&) {
      if (directory == path) throw;
      continue;  // removed, or made unreadable, while we looked
    }
    for (const std::string& name : names) {
      std::string full = directory == "." ? name : directory + "/" + name;
      try {
        listing.entries.push_back(stat_now(root, full));
      } catch (const FileError&) {
        continue;
      }
      if (listing.entries.back().is_directory && left > 1) pending.emplace_back(full, left - 1);
    }
  }
  std::ranges::sort(listing.entries, {}, &FileInfo::path);
  return listing;
}

// A file to read, never a pipe that would block us.
Fd open_file(int root, const std::string& path, struct stat& status) {
  Fd fd = open_beneath(root, path, O_RDONLY);
  status = status_of(fd, path);
  if (S_ISDIR(status.st_mode)) fail(path, EISDIR);
  if (!S_ISREG(status.st_mode))
    throw FileError(printable(path) + ": it is not a regular file (a pipe, socket or device)");
  return fd;
}

std::string read_some(const Fd& fd, const std::string& path, std::uint64_t offset,
                      std::size_t size) {
  auto length = static_cast<std::uint64_t>(status_of(fd, path).st_size);
  if (offset >= length) return {};
  std::string bytes(std::min<std::uint64_t>(size, length - offset), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    ssize_t got = pread(fd.get(), bytes.data() + done, bytes.size() - done,
                        static_cast<off_t>(offset + done));
    if (got == -1 && errno == EINTR) continue;
    if (got == -1) fail(path, errno);
    if (got == 0) break;  // it was cut meanwhile
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

class Writer final : public FileWriter {
 public:
  Writer(std::shared_ptr<const WorkspaceFiles::Root> root, std::string path,
         boost::asio::thread_pool& pool)
      : root_(std::move(root)), path_(std::move(path)), pool_(pool) {
    int directory = root_->directory.get();
    replacement_ = std::make_unique<Replacement>(directory, path_, root_->owner);
  }
  // To free what a large file took up takes its time.
  ~Writer() override {
    boost::asio::post(pool_, [dropped = std::move(replacement_)] {});
  }

  awaitable<void> write(std::string_view bytes) override {
    auto work = [this, bytes] {
      replacement_->write(bytes);
      return true;
    };
    co_await async::on_pool(pool_, work);
  }
  awaitable<FileInfo> finish() override {
    auto work = [this] {
      replacement_->finish();
      return stat_now(root_->directory.get(), path_);
    };
    co_return co_await async::on_pool(pool_, work);
  }

 private:
  std::shared_ptr<const WorkspaceFiles::Root> root_;
  std::string path_;
  boost::asio::thread_pool& pool_;
  std::unique_ptr<Replacement> replacement_;
};

class Reader final : public FileReader {
 public:
  Reader(int root, std::string path, boost::asio::thread_pool& pool)
      : path_(std::move(path)), pool_(pool) {
    struct stat status {};
    file_ = open_file(root, path_, status);
    info_ = info_of(path_, status);
    // The time of the last change is the one that code in the sandbox cannot set.
    version_ = std::to_string(status.st_ino) + "-" + std::to_string(status.st_size) + "-" +
               std::to_string(status.st_ctim.tv_sec) + "." + std::to_string(status.st_ctim.tv_nsec);
  }

  const FileInfo& info() const override { return info_; }
  const std::string& version() const override { return version_; }
  awaitable<std::string> read(std::uint64_t offset, std::size_t size) override {
    auto work = [this, offset, size] { return read_some(file_, path_, offset, size); };
    co_return co_await async::on_pool(pool_, work);
  }

 private:
  std::string path_, version_;
  boost::asio::thread_pool& pool_;
  Fd file_;
  FileInfo info_;
};

}  // namespace

WorkspaceFiles::WorkspaceFiles(std::filesystem::path workspace, boost::asio::thread_pool& pool)
    : workspace_(std::move(workspace)), pool_(pool) {
  auto root = std::make_shared<Root>();
  root->owner = workspace_owner(workspace_);
  root->directory = Fd(::open(workspace_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!root->directory)
    throw std::system_error(errno, std::generic_category(), workspace_.string());
  root_ = std::move(root);
}

awaitable<FileInfo> WorkspaceFiles::stat(std::string path) {
  auto work = [root = root_, relative = workspace_path(path)] {
    return stat_now(root->directory.get(), relative);
  };
  co_return co_await async::on_pool(pool_, std::move(work));
}

awaitable<Listing> WorkspaceFiles::list(std::string path, int depth, std::size_t cap) {
  auto work = [root = root_, relative = workspace_path(path), depth, cap] {
    return list_now(root->directory.get(), relative, depth, cap);
  };
  co_return co_await async::on_pool(pool_, std::move(work));
}

awaitable<std::string> WorkspaceFiles::read(std::string path, std::uint64_t offset,
                                            std::size_t size) {
  auto work = [root = root_, relative = workspace_path(path), offset, size] {
    struct stat status {};
    Fd fd = open_file(root->directory.get(), relative, status);
    return read_some(fd, relative, offset, size);
  };
  co_return co_await async::on_pool(pool_, std::move(work));
}

awaitable<FileInfo> WorkspaceFiles::write(std::string path, std::string bytes) {
  auto work = [root = root_, relative = file_path(path), content = std::move(bytes)] {
    replace_file(root->directory.get(), relative, root->owner, from_memory(content));
    return stat_now(root->directory.get(), relative);
  };
  co_return co_await async::on_pool(pool_, std::move(work));
}

awaitable<FileInfo> WorkspaceFiles::copy_in(std::string path, int host_fd, std::uint64_t cap) {
  auto work = [root = root_, relative = file_path(path), host_fd, cap] {
    replace_file(root->directory.get(), relative, root->owner, from_file(host_fd, cap));
    return stat_now(root->directory.get(), relative);
  };
  co_return co_await async::on_pool(pool_, std::move(work));
}

awaitable<std::unique_ptr<FileWriter>> WorkspaceFiles::create(std::string path) {
  auto work = [root = root_, relative = file_path(path), &pool = pool_] {
    return std::unique_ptr<FileWriter>(std::make_unique<Writer>(root, relative, pool));
  };
  co_return co_await async::on_pool(pool_, std::move(work));
}

awaitable<std::unique_ptr<FileReader>> WorkspaceFiles::open(std::string path) {
  auto work = [root = root_, relative = workspace_path(path), &pool = pool_] {
    int directory = root->directory.get();
    return std::unique_ptr<FileReader>(std::make_unique<Reader>(directory, relative, pool));
  };
  co_return co_await async::on_pool(pool_, std::move(work));
}

awaitable<std::uint64_t> WorkspaceFiles::used(std::uint64_t enough) {
  auto root = root_;
  co_return co_await disk_usage(pool_, root->directory.get(), enough);
}

std::string WorkspaceFiles::host_path(const std::string& path) const {
  std::string relative = workspace_path(path);
  return relative == "." ? workspace_.string() : (workspace_ / relative).string();
}

}  // namespace sandbox::local
