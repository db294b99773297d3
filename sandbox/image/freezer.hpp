#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sandbox::image {

struct FreezeRequest {
  // The template image that the process was thawed from, if any: its clean pages are referred to,
  // not copied. Never a session's image: an image depends on one other at most.
  std::filesystem::path base;
  // Inside. Its files may be copies in a thaw, with other inodes: size and time tell them then.
  std::string copied = "/workspace";
  bool keep_running = true;  // false: the process is killed once the image is complete
  // Take the memory from a fork() of the process, which goes on meanwhile: a pause of some 10 ms
  // whatever its size. Ignored when the process is to end, and where fork() would miss something.
  bool by_fork = true;
  // Only once the process waits for something to read from descriptor 3: a kernel between two
  // cells, not one that is just about to be. Refused if it does not within `limit`.
  bool when_waiting = true;
  bool allow_lost = false;  // go on without what cannot be carried, and say so
  // Complete means on the disk. False where there is no time for that: whoever reads an image that
  // a loss of power has spoilt is told so by its checksums.
  bool sync = true;
  std::uint64_t max_bytes = 64ull << 30;        // of the image; more is refused
  std::chrono::milliseconds limit{30'000};      // for everything
  const std::atomic<bool>* given_up = nullptr;  // refused soon after it was set, if any
};

struct Frozen {
  std::uint64_t bytes = 0;             // of the image, as written to disk
  std::chrono::microseconds pause{0};  // how long the process stood still
  std::vector<std::string> lost;       // what was not carried: "descriptor 7: a TCP socket"
  bool by_fork = false;
};

// Writes the state of the process `pid` (of this machine's pid namespace), which was started by
// `loader boot` or `loader thaw` in a sandbox of its own, to a new file. The file is made aside,
// synced and renamed: it is complete or absent, and one that exists is never replaced.
//
// Blocks; for a pool thread. Nobody may wait for "any child" meanwhile: ptrace reports by waitpid.
// Throws FreezeError with what stood in the way; the process then goes on as if nothing had
// happened, unless it stopped answering: then it was killed, and the error says so. Nothing that
// the process claims about itself is trusted: it can spoil its own image only.
Frozen freeze(pid_t pid, const std::filesystem::path& image, const FreezeRequest& request);

// The pages of a thawed process that are its own by now, as written into the hot set of the
// template image it came from: later thaws prepare them ahead. To be called once the process has
// run a typical first cell, before the image is in use by anyone else. Throws FreezeError.
void train(pid_t pid, const std::filesystem::path& image);

}  // namespace sandbox::image
