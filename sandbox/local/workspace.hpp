#pragma once

#include <boost/asio/thread_pool.hpp>
#include <filesystem>
#include <memory>

#include "sandbox/files.hpp"

namespace sandbox::local {

// Files of a workspace directory on this machine; all work happens on `pool`, which outlives it.
class WorkspaceFiles : public Files {
 public:
  // A root server gives the directory to its sandbox's user first (ids.hpp), and what it writes
  // later too. Throws std::system_error if it is not there.
  WorkspaceFiles(std::filesystem::path workspace, boost::asio::thread_pool& pool);

  awaitable<FileInfo> stat(std::string path) override;
  awaitable<Listing> list(std::string path, int depth, std::size_t cap) override;
  awaitable<std::string> read(std::string path, std::uint64_t offset, std::size_t size) override;
  awaitable<FileInfo> write(std::string path, std::string bytes) override;
  awaitable<FileInfo> copy_in(std::string path, int host_fd, std::uint64_t cap) override;
  awaitable<std::unique_ptr<FileWriter>> create(std::string path) override;
  awaitable<std::unique_ptr<FileReader>> open(std::string path) override;
  awaitable<std::uint64_t> used(std::uint64_t enough) override;
  std::string host_path(const std::string& path) const override;

  // The directory was renamed.
  void move_to(std::filesystem::path workspace) { workspace_ = std::move(workspace); }

  struct Root;

 private:
  std::filesystem::path workspace_;
  boost::asio::thread_pool& pool_;
  std::shared_ptr<const Root> root_;  // shared with the work on the pool
};

// tree_size() on the pool, for limits.
awaitable<std::uint64_t> disk_usage(boost::asio::thread_pool& pool, int directory,
                                    std::uint64_t enough);

}  // namespace sandbox::local
