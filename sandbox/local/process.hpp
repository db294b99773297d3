#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/sandbox.hpp"

namespace sandbox::local {

// A closed-on-destruction descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// A sandboxed program, just started, and its ends. Movable; destroying it kills the sandbox (by its
// cgroup if it has one, and by pid 1 of its pid namespace) without waiting, and releases its
// cgroup.
class Process {
 public:
  virtual ~Process() = default;

  Fd link;   // our end of the AF_UNIX stream on its descriptor 3 (kernel link), non-blocking
  Fd out;    // read end of its stdout, non-blocking
  Fd err;    // read end of its stderr, non-blocking
  Fd pidfd;  // of bwrap's outer process: readable once everything in the sandbox has ended

  // The program's pid on this machine (pid 2 inside); 0 once it has ended.
  virtual pid_t program() = 0;
  virtual void interrupt() = 0;      // SIGINT to the program itself (pid 2 inside)
  virtual void kill_children() = 0;  // SIGKILL to all in the sandbox but the program and its init
  virtual void kill() = 0;           // SIGKILL to all
  // After pidfd became readable: the wait status of the program as bwrap passed it on
  // (exit code 128+n for signal n).
  virtual int wait_status() = 0;
  virtual std::uint64_t memory_kills() = 0;  // by the limit, so far
  virtual Usage usage() = 0;

  // Where the kernel cannot limit the memory of all processes together, somebody has to look and
  // act: then is_sampled() is true, and watch() (watchdog.hpp) is to run as long as the process
  // does.
  virtual bool is_sampled() const = 0;
  virtual void enforce() = 0;  // kills the biggest process if the limit is exceeded right now
};

// What a program that thaws an image is given besides descriptors 0 to 3.
struct Images {
  std::vector<int> descriptors;  // from kAboveProgram on; their numbers inside go to argv's end
  // How far these clocks have to be ahead of this machine's, for a process that was frozen before
  // it booted: zero leaves them alone.
  std::chrono::nanoseconds monotonic{0}, boottime{0};
  // Bytes of the template's image. It is mapped privately, which RLIMIT_DATA counts, but it is no
  // memory of the session's own: the process may have so much more.
  std::uint64_t of_template = 0;
};

// Starts `argv` (paths inside) in a fresh sandbox for `spec`. To be called from the main thread
// (PR_SET_PDEATHSIG is per thread). Blocks only for the spawn, a few milliseconds. Throws
// StartError.
std::unique_ptr<Process> launch(const SandboxSpec& spec, const std::vector<std::string>& argv,
                                const std::filesystem::path& kernel_package,
                                const Images& images = {});

}  // namespace sandbox::local
