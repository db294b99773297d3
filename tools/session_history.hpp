#pragma once

#include <boost/asio/thread_pool.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "async/async.hpp"
#include "sandbox/execution.hpp"
#include "tools/notebook.hpp"

namespace tools {

using async::awaitable;

// What one session has executed, on disk, for exports. Bounded; written behind the answers of the
// executions, whose caller does not wait for it. Everything here takes its turn in the order it was
// called.
class SessionHistory {
 public:
  // The pool outlives it.
  SessionHistory(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool,
                 std::filesystem::path file);

  // Adds an execution that has ended. What cannot be written is logged: the session goes on.
  awaitable<void> add(std::shared_ptr<const sandbox::Execution> execution, int number);

  awaitable<std::string> exported(ExportFormat format, std::size_t bytes);

  // Into a snapshot; returns its size. Throws StoreError.
  awaitable<std::uint64_t> copy_to(std::filesystem::path file);
  // Becomes that of a snapshot. What cannot be read or written is logged.
  awaitable<void> copy_from(std::filesystem::path file);

 private:
  boost::asio::thread_pool& pool_;
  std::filesystem::path file_;
  async::Turn turn_;
};

}  // namespace tools
