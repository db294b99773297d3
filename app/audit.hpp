#pragma once

#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <string>

#include "async/async.hpp"
#include "tools/observer.hpp"

namespace app {

// A file that only grows, with a line of JSON for each execution: who, when, in which session, the
// SHA-256 of the code, how long, and what came of it; never the code. It is made with mode 0600,
// and each line is one write.
//
// Lines wait in memory, at most kMaxWaiting of them, and are written off the loop. What cannot be
// written (a full disk) is lost: counted, and warned of once, until a line can be written again.
// The server goes on.
class Audit final : public tools::Observer {
 public:
  static constexpr std::size_t kMaxWaiting = 10'000;

  // Opens the file. The pool outlives it. Throws std::runtime_error that says why it cannot be had.
  Audit(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool,
        std::filesystem::path file);
  Audit(const Audit&) = delete;
  Audit& operator=(const Audit&) = delete;
  ~Audit() override;

  void execution_ended(const tools::ExecutionReport& report) override;
  void kernel_started(const std::string&, const std::string&, sandbox::Start,
                      std::chrono::milliseconds) override {}
  void kernel_ended(const std::string&, const std::string&) override {}

  // Writes lines as they come, until cancelled. A line that is being written then gets written, and
  // those that still wait when this object goes away.
  async::awaitable<void> run();

  // Goes on in a new file of the same name: the old one was moved away (log rotation). Before the
  // next line; if the new one cannot be had, the old one stays and the log says why.
  void reopen();

  std::uint64_t lost() const { return lost_; }

 private:
  using Lines = std::deque<std::string>;
  struct Wrote {
    std::size_t lines = 0;
    int failure = 0;  // errno
  };
  Wrote write(const Lines& lines, bool reopen);
  void account(const Lines& lines, const Wrote& wrote);
  static int open_file(const std::filesystem::path& file);

  boost::asio::thread_pool& pool_;
  std::filesystem::path file_;
  async::Changed changed_;
  Lines waiting_;
  std::uint64_t lost_ = 0;
  bool warned_ = false;
  bool reopen_ = false;
  // Used on the pool, by one write at a time.
  int fd_;
  bool torn_ = false;  // the file ends within a line
};

}  // namespace app
