#pragma once

#include <boost/asio/thread_pool.hpp>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/sandbox.hpp"
#include "sandbox/session_store.hpp"

namespace tools {

using async::awaitable;

// When a session's kernel is saved for the case that it dies: after so many cells, or so many
// seconds of work. 0: not for that reason.
struct CheckpointPolicy {
  int cells = 10;
  std::chrono::seconds work{30};
};

// The frozen kernel of one session on disk: at most one. It is `current` while nothing has run
// since, so that waking from it loses nothing; else it is a checkpoint, to go back to when the
// kernel dies. Which of the two holds is on disk before the first cell that makes the difference.
//
// Called with the session's turn held. The record is the lease's: whoever saves that saves this.
class SessionImages {
 public:
  // All outlive it.
  SessionImages(boost::asio::thread_pool& pool, sandbox::SessionStore& store,
                sandbox::SessionLease& lease, CheckpointPolicy policy);

  const std::optional<sandbox::ImageRecord>& record() const { return lease_.record.image; }
  std::filesystem::path path() const { return lease_.image(record()->number); }
  // Whether the session's variables are on disk as they were last.
  bool current() const;

  // Freezes the kernel, after `execution`, into an image that takes the place of the one before.
  // With keep_running it is a checkpoint, else the kernel ends and the image is current. Throws
  // FreezeError; the image before then stays.
  awaitable<sandbox::FreezeReport> take(sandbox::Sandbox& sandbox, int execution,
                                        sandbox::FreezeOptions options);
  // Throws ThawError unless it is the image that take() made.
  awaitable<void> check() const;
  // The kernel was restored from it and goes on: from now on it is a checkpoint, or nothing where
  // checkpoints are off.
  awaitable<void> outdate();
  awaitable<void> drop();

  // A cell has run for so long. Whether a checkpoint is due by now.
  void worked(std::chrono::steady_clock::duration time);
  bool due() const;
  // A checkpoint took, or failed after, so long: the next one is not before ten times that.
  void tried(std::chrono::steady_clock::duration time);

  // Writes the session's record, which lets another process tell what became of the session. False
  // when it could not; that is logged, and what stood there stands.
  awaitable<bool> save();

 private:
  bool checkpoints() const { return policy_.cells > 0 || policy_.work.count() > 0; }

  boost::asio::thread_pool& pool_;
  sandbox::SessionStore& store_;
  sandbox::SessionLease& lease_;
  CheckpointPolicy policy_;
  int cells_ = 0;  // since the last attempt
  std::chrono::steady_clock::duration work_{0}, pause_{0};
  std::chrono::steady_clock::time_point tried_;
};

// "after execution 5", or "before its first execution" for 0.
std::string after_execution(int number);

// For a sentence of a result: "fd 7: a socket, and 3 more"; empty for nothing.
std::string list_of(const std::vector<std::string>& lost);

}  // namespace tools
