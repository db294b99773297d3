#pragma once

#include <boost/asio/thread_pool.hpp>
#include <memory>

#include "async/task_group.hpp"
#include "sandbox/files.hpp"
#include "sandbox/pandastack/guest.hpp"

namespace sandbox::pandastack {

// A session's files, where they are: in its guest. Small operations are commands there
// (guest/workspace.py), content goes up by the API's files, in parts. What comes back was written
// in the guest: it can say wrong things of its own files, and nothing else.
class GuestFiles final : public Files {
 public:
  // `pool`, for reading files of this machine, and `tasks`, for dropping what is not finished,
  // outlive it and what it returns.
  GuestFiles(async::TaskGroup& tasks, boost::asio::thread_pool& pool, std::shared_ptr<Guest> guest);

  awaitable<FileInfo> stat(std::string path) override;
  awaitable<Listing> list(std::string path, int depth, std::size_t cap) override;
  awaitable<std::string> read(std::string path, std::uint64_t offset, std::size_t size) override;
  awaitable<FileInfo> write(std::string path, std::string bytes) override;
  awaitable<FileInfo> copy_in(std::string path, int host_fd, std::uint64_t cap) override;
  awaitable<std::unique_ptr<FileWriter>> create(std::string path) override;
  awaitable<std::unique_ptr<FileReader>> open(std::string path) override;
  awaitable<std::uint64_t> used(std::uint64_t enough) override;
  std::string host_path(const std::string&) const override { return {}; }

 private:
  async::TaskGroup& tasks_;
  boost::asio::thread_pool& pool_;
  std::shared_ptr<Guest> guest_;
};

}  // namespace sandbox::pandastack
