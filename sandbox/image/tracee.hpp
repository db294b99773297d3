#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "sandbox/image/parasite.hpp"

namespace sandbox::image {

// All threads of a process, held still by ptrace, and our code run inside them. Belongs to the
// thread that made it. Whatever happens, the destructor puts every register back and lets the
// process go on, unless it stopped answering: then it is killed.
class Tracee {
 public:
  using Clock = std::chrono::steady_clock;

  struct Thread {
    pid_t tid = 0;
    bool stopped = false;
    bool saved = false;  // `registers` and `mask` are what it had
    user_regs_struct registers{};
    std::uint64_t mask = 0;
  };

  // Stops every thread, the main one first, the others by number.
  // Throws FreezeError: it has ended, is stopped or traced already, or did not stop in time.
  Tracee(pid_t pid, Clock::time_point deadline);
  ~Tracee();
  Tracee(const Tracee&) = delete;
  Tracee& operator=(const Tracee&) = delete;

  pid_t pid() const { return pid_; }
  const std::vector<Thread>& threads() const { return threads_; }
  // Moves every thread out of the kernel's vdso and of our code. False: one of them is only just
  // being thawed; another time.
  bool leave_loader();
  // Whether the main thread was stopped in a wait for something to read from this descriptor.
  bool waits_for(int descriptor) const;
  Clock::time_point stopped_at() const { return stopped_at_; }

  // Runs the parasite in that thread. Throws FreezeError when it does not come back in time.
  ParasiteResult run_parasite(std::size_t thread);
  // A copy of the process, stopped and traced, that the sandbox's init will reap; 0 where there can
  // be none (limits). The caller kills it by end_copy().
  pid_t fork();
  void end_copy(pid_t copy);

  void release();  // lets the process go on; the object is then empty
  void kill();     // ends the process; likewise

 private:
  void stop_all();
  bool stop_new();
  void stop(Thread& thread);
  void save(Thread& thread);
  bool leave_loader(Thread& thread);
  void run(Thread& thread, std::uint64_t entry, std::uint64_t argument);
  int wait(pid_t tid);
  int wait_for_own(pid_t tid);
  void stop_again(Thread& thread);
  void go_on(Thread& thread);

  pid_t pid_;
  Clock::time_point deadline_;
  Clock::time_point stopped_at_;
  std::vector<Thread> threads_;
};

// The table of the loader that this program carries.
const LoaderTable& loader_table();
// What Header::loader_abi is for it.
std::uint32_t loader_abi();

}  // namespace sandbox::image
