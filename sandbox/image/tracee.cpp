#include "sandbox/image/tracee.hpp"

#include <elf.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "sandbox/image/image.hpp"
#include "sandbox/image/proc.hpp"
#include "sandbox/sandbox.hpp"

namespace sandbox::image {

namespace {

constexpr std::size_t kMaxThreads = 20'000;
constexpr int kMaxSteps = 4'000;  // a few hundred are usual
// For our code in the process, whatever the deadline: it takes a millisecond unless it was changed.
constexpr std::chrono::seconds kOwnLimit{2};
constexpr std::uint64_t kAllButTrap = ~(1ull << (SIGTRAP - 1));

// WSTOPSIG says SIGTRAP for all of these; the event is above it.
int event_of(int status) { return status >> 16; }

bool is_trap(int status) {
  return WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP && event_of(status) == 0;
}

void set_registers(pid_t tid, const user_regs_struct& registers) {
  iovec vector{const_cast<user_regs_struct*>(&registers), sizeof registers};
  if (ptrace(PTRACE_SETREGSET, tid, NT_PRSTATUS, &vector) == -1)
    refuse_errno("cannot set registers");
}

user_regs_struct get_registers(pid_t tid) {
  user_regs_struct registers{};
  iovec vector{&registers, sizeof registers};
  if (ptrace(PTRACE_GETREGSET, tid, NT_PRSTATUS, &vector) == -1)
    refuse_errno("cannot read registers");
  return registers;
}

void set_mask(pid_t tid, std::uint64_t mask) {
  if (ptrace(PTRACE_SETSIGMASK, tid, sizeof mask, &mask) == -1)
    refuse_errno("cannot block signals");
}

// Waiting is polling: waitpid has no time limit, and a process may take as long as it likes.
void pause_a_little(int& rounds) {
  timespec pause{0, std::min(1'000'000, 20'000 << std::min(rounds++ / 8, 6))};
  nanosleep(&pause, nullptr);
}

}  // namespace

const LoaderTable& loader_table() {
  static const LoaderTable table = [] {
    LoaderTable read{};
    // The program's first segment is its whole text, headers included: addresses are offsets.
    std::memcpy(&read, loader_program().data() + (kLoaderTable - kLoader), sizeof read);
    return read;
  }();
  return table;
}

std::uint32_t loader_abi() {
  static const std::uint32_t crc =
      crc32c(loader_program().data() + (loader_table().proxy - kLoader), kPageSize);
  return crc;
}

Tracee::Tracee(pid_t pid, Clock::time_point deadline)
    : pid_(pid), deadline_(deadline), stopped_at_(Clock::now()) {
  try {
    stop_all();
    for (Thread& thread : threads_) save(thread);
  } catch (...) {
    release();
    throw;
  }
}

Tracee::~Tracee() { release(); }

bool Tracee::waits_for(int descriptor) const {
  const user_regs_struct& registers = threads_[0].registers;
  // A call that was interrupted before it had done anything: the kernel is going to make it again.
  auto result = static_cast<std::int64_t>(registers.rax);
  if (result > -512 || result < -516) return false;
  auto first = static_cast<int>(registers.rdi);
  switch (static_cast<long>(registers.orig_rax)) {
    case SYS_read:
    case SYS_recvfrom:
      return first == descriptor;
    case SYS_select:
    case SYS_pselect6:
      return first == descriptor + 1;  // the number of descriptors looked at
    default:
      return false;
  }
}

void Tracee::stop_all() {
  while (stop_new()) {
  }
  auto main = std::ranges::find(threads_, pid_, &Thread::tid);
  if (main == threads_.end()) refuse("the process has ended");
  std::iter_swap(threads_.begin(), main);
  std::ranges::sort(threads_.begin() + 1, threads_.end(), {}, &Thread::tid);
}

// Threads make threads until all of them stand still.
bool Tracee::stop_new() {
  std::vector<pid_t> found;
  std::string tasks = proc_path(pid_, "task");
  for (pid_t tid : list_numbers(tasks))
    if (std::ranges::find(threads_, tid, &Thread::tid) == threads_.end()) found.push_back(tid);
  if (threads_.size() + found.size() > kMaxThreads) refuse("the process has too many threads");
  // All are told to stop before any is waited for.
  std::size_t first = threads_.size();
  for (pid_t tid : found) {
    if (ptrace(PTRACE_SEIZE, tid, 0, 0) == -1) {
      if (errno == ESRCH) continue;  // ended meanwhile
      refuse_errno("cannot trace the process (is it being debugged, or is ptrace forbidden here?)");
    }
    ptrace(PTRACE_INTERRUPT, tid, 0, 0);
    threads_.push_back(Thread{.tid = tid});
  }
  for (std::size_t index = first; index < threads_.size(); ++index) stop(threads_[index]);
  std::erase_if(threads_, [](const Thread& thread) { return thread.tid == 0; });
  return !found.empty();
}

void Tracee::stop(Thread& thread) {
  for (;;) {
    int status = wait(thread.tid);
    if (!WIFSTOPPED(status)) {  // ended
      if (thread.tid == pid_) refuse("the process has ended");
      thread.tid = 0;
      return;
    }
    thread.stopped = true;
    if (event_of(status) == PTRACE_EVENT_STOP) {
      if (WSTOPSIG(status) == SIGTRAP) return;
      refuse("the process is stopped by a signal (SIGSTOP)");
    }
    // About to take a signal: it shall have it, and then stop.
    thread.stopped = false;
    ptrace(PTRACE_CONT, thread.tid, 0, WSTOPSIG(status));
  }
}

void Tracee::save(Thread& thread) {
  thread.registers = get_registers(thread.tid);
  if (ptrace(PTRACE_GETSIGMASK, thread.tid, sizeof thread.mask, &thread.mask) == -1)
    refuse_errno("cannot read the signal mask");
  thread.saved = true;
  // SIGTRAP is how our code comes to its end: a blocked one would reset the process's handler.
  set_mask(thread.tid, kAllButTrap);
}

// The kernel's vdso and our fallbacks for it are at other addresses, or other code, after a thaw.
// All of them are leaf functions: a few steps and the thread is out.
bool Tracee::leave_loader(Thread& thread) {
  auto inside = [&] {
    return thread.registers.rip >= kReserved && thread.registers.rip < kReservedEnd;
  };
  for (int step = 0; inside(); ++step) {
    // Waiting for its turn to go on (loader/threads.cpp), or far from a leaf.
    if (static_cast<long>(thread.registers.orig_rax) == SYS_futex || step == kMaxSteps)
      return false;
    if (ptrace(PTRACE_SINGLESTEP, thread.tid, 0, 0) == -1) refuse_errno("cannot step a thread");
    thread.stopped = false;
    if (!is_trap(wait(thread.tid))) refuse("a thread did something else than a step");
    thread.stopped = true;
    thread.registers = get_registers(thread.tid);
  }
  return true;
}

bool Tracee::leave_loader() {
  return std::ranges::all_of(threads_, [&](Thread& thread) { return leave_loader(thread); });
}

int Tracee::wait(pid_t tid) {
  for (int rounds = 0;;) {
    int status = 0;
    pid_t found = waitpid(tid, &status, __WALL | WNOHANG);
    if (found == tid) return status;
    if (found == -1 && errno != EINTR) refuse("the process has ended");
    if (Clock::now() > deadline_) refuse("the process did not stop in time");
    if (rounds < 16)
      ++rounds, sched_yield();
    else
      pause_a_little(rounds);
  }
}

int Tracee::wait_for_own(pid_t tid) {
  auto whole = std::exchange(deadline_, Clock::now() + kOwnLimit);
  int status = wait(tid);
  deadline_ = whole;
  return status;
}

void Tracee::run(Thread& thread, std::uint64_t entry, std::uint64_t argument) {
  user_regs_struct registers = thread.registers;
  registers.rip = entry;
  registers.rsp = loader_table().stack_end;
  registers.rdi = argument;
  registers.rax = 0;
  registers.orig_rax = ~0ull;     // no system call to restart
  registers.eflags &= ~0x500ull;  // neither stepping nor backwards
  set_registers(thread.tid, registers);
  thread.stopped = false;
  if (ptrace(PTRACE_CONT, thread.tid, 0, 0) == -1) refuse_errno("cannot run a thread");
}

ParasiteResult Tracee::run_parasite(std::size_t index) {
  Thread& thread = threads_[index];
  run(thread, loader_table().parasite, index == 0);
  int status = wait_for_own(thread.tid);
  thread.stopped = WIFSTOPPED(status);
  if (!is_trap(status)) refuse("the process has changed the loader");
  ParasiteResult result{};
  iovec here{&result, sizeof result};
  iovec there{reinterpret_cast<void*>(loader_table().result), sizeof result};
  if (process_vm_readv(pid_, &here, 1, &there, 1, 0) != sizeof result)
    refuse("the process has changed the loader");
  return result;
}

pid_t Tracee::fork() {
  Thread& main = threads_[0];
  constexpr long kOptions = PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACECLONE;
  ptrace(PTRACE_SETOPTIONS, main.tid, 0, kOptions);
  run(main, loader_table().parasite_fork, 0);
  int status = wait_for_own(main.tid);
  main.stopped = WIFSTOPPED(status);
  unsigned long copy = 0;
  if (WIFSTOPPED(status) && event_of(status) != 0) {
    ptrace(PTRACE_GETEVENTMSG, main.tid, 0, &copy);
    wait_for_own(static_cast<pid_t>(copy));
    ptrace(PTRACE_CONT, main.tid, 0, 0);
    main.stopped = false;
    status = wait_for_own(main.tid);
    main.stopped = WIFSTOPPED(status);
  }
  ptrace(PTRACE_SETOPTIONS, main.tid, 0, 0);
  if (!is_trap(status)) refuse("the process has changed the loader");
  return static_cast<pid_t>(copy);
}

void Tracee::end_copy(pid_t copy) {
  ::kill(copy, SIGKILL);
  int status = 0, rounds = 0;
  auto limit = Clock::now() + kOwnLimit;
  while (waitpid(copy, &status, __WALL | WNOHANG) == 0 && Clock::now() < limit)
    pause_a_little(rounds);
}

// A thread in which our code did not come to its end.
void Tracee::stop_again(Thread& thread) {
  ptrace(PTRACE_INTERRUPT, thread.tid, 0, 0);
  for (;;) {
    int status = wait_for_own(thread.tid);
    thread.stopped = WIFSTOPPED(status);
    bool forking = thread.stopped && event_of(status) != 0 && event_of(status) != PTRACE_EVENT_STOP;
    if (!forking) return;
    // In the middle of a system call, whose result would still be put into the registers.
    unsigned long copy = 0;
    if (ptrace(PTRACE_GETEVENTMSG, thread.tid, 0, &copy) == 0 && copy > 0)
      end_copy(static_cast<pid_t>(copy));
    ptrace(PTRACE_CONT, thread.tid, 0, 0);
  }
}

void Tracee::go_on(Thread& thread) {
  if (!thread.stopped) stop_again(thread);
  if (thread.saved) {
    set_registers(thread.tid, thread.registers);
    set_mask(thread.tid, thread.mask);
  }
  ptrace(PTRACE_DETACH, thread.tid, 0, 0);
}

void Tracee::release() {
  for (Thread& thread : threads_) try {
      go_on(thread);
    } catch (const FreezeError&) {
      // Without its registers it would go on in the wrong place. (If it has ended, nothing
      // happens.)
      if (thread.saved) ::kill(pid_, SIGKILL);
    }
  threads_.clear();
}

void Tracee::kill() {
  ::kill(pid_, SIGKILL);
  for (Thread& thread : threads_) ptrace(PTRACE_DETACH, thread.tid, 0, 0);
  threads_.clear();
}

}  // namespace sandbox::image
