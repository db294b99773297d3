#pragma once

#include <boost/asio/thread_pool.hpp>
#include <optional>
#include <string>

#include "sandbox/kernel.hpp"
#include "sandbox/local/process.hpp"

namespace sandbox::local {

// Keeps an execution's whole text as outputs/<number>.txt in the workspace, up to a cap; a name
// that is taken stays untouched ("outputs/3-full.txt" and so on are next). All writing happens on
// `pool`.
class WorkspaceSpill : public Spill {
 public:
  // `directory` (the workspace, open) and `pool` outlive it. New files belong to `owner`.
  WorkspaceSpill(boost::asio::thread_pool& pool, int directory, std::optional<uid_t> owner,
                 std::uint64_t cap)
      : pool_(pool), directory_(directory), owner_(owner), cap_(cap) {}

  awaitable<void> append(const Execution& execution, std::string bytes) override;
  awaitable<std::string> finish(const Execution& execution) override;

 private:
  bool create(int number);
  bool write(int number, std::string_view bytes);

  boost::asio::thread_pool& pool_;
  int directory_;
  std::optional<uid_t> owner_;
  std::uint64_t cap_;

  // Of the execution that is being written.
  std::string path_;
  Fd file_;
  std::uint64_t written_ = 0;
  bool stopped_ = false;
};

}  // namespace sandbox::local
