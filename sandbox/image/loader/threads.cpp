#include <asm/prctl.h>
#include <linux/futex.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <sys/mman.h>

#include "sandbox/image/loader/thaw.hpp"

// Every thread continues by rt_sigreturn: the kernel then loads all registers at once, from a
// signal frame that we lay out ourselves (arch/x86/kernel/signal_64.c, fpu/signal.c).
namespace sandbox::image::loader {

namespace {

constexpr std::uint32_t kXsaveMagic1 = 0x46505853;  // FP_XSTATE_MAGIC1
constexpr std::uint32_t kXsaveMagic2 = 0x46505845;
constexpr std::uint64_t kXsaveSoftware = 464;  // where the frame describes itself
constexpr std::uint64_t kContextFlags =
    7;  // UC_FP_XSTATE | UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS
constexpr std::uint16_t kUserCode = 0x33, kUserData = 0x2b;
constexpr std::uint64_t kMaxXsave = 16 << 10;
constexpr std::uint64_t kSmallStack = 2048;

// user_regs_struct, by index.
enum Register {
  r15,
  r14,
  r13,
  r12,
  rbp,
  rbx,
  r11,
  r10,
  r9,
  r8,
  rax,
  rcx,
  rdx,
  rsi,
  rdi,
  orig_rax,
  rip,
  cs,
  eflags,
  rsp,
  ss,
  fs_base,
  gs_base
};

struct SignalContext {
  std::uint64_t r8, r9, r10, r11, r12, r13, r14, r15, di, si, bp, bx, dx, ax, cx, sp, ip, flags;
  std::uint16_t cs, gs, fs, ss;
  std::uint64_t error, trap, old_mask, cr2, xsave, reserved[8];
};

struct UserContext {
  std::uint64_t flags, link, stack;
  std::uint32_t stack_flags, padding;
  std::uint64_t stack_size;
  SignalContext registers;
  std::uint64_t mask;
};

struct XsaveSoftware {
  std::uint32_t magic1, extended_size;
  std::uint64_t features;
  std::uint32_t size, padding[7];
};

// One a thread, at kFrames. Stays mapped; nobody looks at it again.
struct Slot {
  alignas(64) std::uint8_t xsave[kMaxXsave];
  UserContext context;
  ThreadState thread;
  alignas(16) std::uint8_t stack[kSmallStack];  // until the thread has its own again
};

Slot& slot(std::uint64_t index) { return reinterpret_cast<Slot*>(kFrames)[index]; }

std::uint32_t go = 0;  // a futex: 1 lets all threads continue

// A system call that was interrupted by the freeze is made again. The kernel does so by itself for
// a process that stays where it is; here its intention is read from the registers (signal_64.c).
void restart_call(const ThreadState& thread, SignalContext& context) {
  constexpr std::int64_t kRestartSys = -512, kRestartNoIntr = -513, kRestartNoHand = -514;
  constexpr std::int64_t kRestartBlock = -516, kInterrupted = -4;
  if (static_cast<std::int64_t>(thread.registers[orig_rax]) < 0) return;
  auto result = static_cast<std::int64_t>(thread.registers[rax]);
  if (result == kRestartSys || result == kRestartNoIntr || result == kRestartNoHand) {
    context.ax = thread.registers[orig_rax];
    context.ip -= 2;  // back onto `syscall`
  } else if (result == kRestartBlock) {
    // Its rest of a relative wait is known to the old kernel only. Callers count again (PEP 475).
    context.ax = static_cast<std::uint64_t>(kInterrupted);
  }
}

void lay_out(const ThreadState& thread, const std::uint8_t* xsave, std::uint64_t xcr0, Slot& to) {
  const std::uint64_t* from = thread.registers;
  to.thread = thread;
  UserContext& context = to.context;
  constexpr std::uint32_t kOnStack = 1, kDisabled = 2;
  context.flags = kContextFlags;
  context.stack_flags = thread.alternate_stack_flags & ~kOnStack;
  if (!(thread.alternate_stack_flags & kDisabled)) {
    context.stack = thread.alternate_stack;
    context.stack_size = thread.alternate_stack_size;
  }
  context.mask = thread.signal_mask;
  SignalContext& registers = context.registers;
  registers.r8 = from[r8], registers.r9 = from[r9];
  registers.r10 = from[r10], registers.r11 = from[r11];
  registers.r12 = from[r12], registers.r13 = from[r13];
  registers.r14 = from[r14], registers.r15 = from[r15];
  registers.di = from[rdi], registers.si = from[rsi];
  registers.bp = from[rbp], registers.bx = from[rbx];
  registers.dx = from[rdx], registers.ax = from[rax], registers.cx = from[rcx];
  registers.sp = from[rsp], registers.ip = from[rip], registers.flags = from[eflags];
  registers.cs = kUserCode, registers.ss = kUserData;
  restart_call(thread, registers);

  // The kernel takes a frame of exactly the size it would have made; from a larger one it restores
  // no more than SSE, without a word.
  std::uint64_t sets = xcr0 & ~kRegistersOnDemand;
  std::uint32_t size = xsave_size_of(sets);
  if (size > thread.xsave_size) fail("damaged (registers)");
  memcpy(to.xsave, xsave, size);
  XsaveSoftware software{};
  software.magic1 = kXsaveMagic1;
  software.extended_size = size + 4;
  software.features = sets;
  software.size = size;
  memcpy(to.xsave + kXsaveSoftware, &software, sizeof software);
  memcpy(to.xsave + size, &kXsaveMagic2, 4);
  registers.xsave = reinterpret_cast<std::uint64_t>(to.xsave);
}

void restore_kernel_state(const ThreadState& thread) {
  call(__NR_set_robust_list, thread.robust_list, thread.robust_list_size);
  call(__NR_set_tid_address, thread.clear_tid);
  if (thread.rseq)
    check(call(__NR_rseq, thread.rseq, thread.rseq_size, 0, thread.rseq_signature),
          "cannot register a restartable sequence");
  call(__NR_prctl, PR_SET_NAME, thread.name);
  call(__NR_prctl, PR_SET_TIMERSLACK, thread.timer_slack);
  call(__NR_arch_prctl, ARCH_SET_FS, thread.registers[fs_base]);
  if (thread.registers[gs_base]) call(__NR_arch_prctl, ARCH_SET_GS, thread.registers[gs_base]);
}

[[noreturn]] void continue_thread(Slot& own) {
  asm volatile(
      "mov %0, %%rsp\n"
      "mov %1, %%eax\n"
      "syscall\n"
      "hlt"
      :
      : "r"(&own.context), "i"(__NR_rt_sigreturn)
      : "memory");
  __builtin_unreachable();
}

void run_thread(Slot* own) {
  restore_kernel_state(own->thread);
  while (__atomic_load_n(&go, __ATOMIC_ACQUIRE) == 0) call(__NR_futex, &go, FUTEX_WAIT, 0, nullptr);
  continue_thread(*own);
}

extern "C" long start_thread(std::uint64_t flags, void* stack_end, void (*run)(Slot*), Slot* slot);

constexpr std::uint64_t kThreadFlags =
    CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM;
constexpr int kAttempts = 20'000;

// Threads that have ended but not gone yet count against the sandbox's limit: patience.
std::uint32_t start(void* stack_end, void (*run)(Slot*), Slot* slot) {
  long tid = 0;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    tid = start_thread(kThreadFlags, stack_end, run, slot);
    if (tid != -11) break;  // EAGAIN
    call(__NR_sched_yield);
  }
  return static_cast<std::uint32_t>(check(tid, "cannot make a thread"));
}

// Numbers are handed out in turn, and nobody else is here: threads that end at once use up those in
// between. (clone3 could choose a number, but only with a capability.)
void start_as(std::uint32_t tid, std::uint32_t& last, Slot& own) {
  while (last + 1 < tid) last = start(own.stack + kSmallStack, nullptr, nullptr);
  last = start(own.stack + kSmallStack, run_thread, &own);
  if (last != tid) fail("a thread's number was taken");
}

void queue(const QueuedSignal& signal, std::uint32_t pid) {
  std::int32_t number;
  memcpy(&number, signal.info, sizeof number);
  if (signal.tid)
    call(__NR_rt_tgsigqueueinfo, pid, signal.tid, number, signal.info);
  else
    call(__NR_rt_sigqueueinfo, pid, number, signal.info);
}

}  // namespace

void prepare_threads(const Image& image) {
  std::uint64_t count = image.count(kThreads), bytes = image.count(kRegisters);
  const ThreadState* threads = image.begin<ThreadState>(kThreads);
  const std::uint8_t* registers = image.begin<std::uint8_t>(kRegisters);
  map_at(kFrames, page_up(count * sizeof(Slot)), PROT_READ | PROT_WRITE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, "cannot map threads");
  for (std::uint64_t index = 0; index < count; ++index) {
    const ThreadState& thread = threads[index];
    if (thread.xsave_offset > bytes || thread.xsave_size > bytes - thread.xsave_offset ||
        thread.xsave_size < kXsaveSoftware + sizeof(XsaveSoftware) ||
        thread.xsave_size > kMaxXsave - 4 || thread.xsave_size != image.header().cpu.xsave_size)
      fail("damaged (registers)");
    lay_out(thread, registers + thread.xsave_offset, image.header().cpu.xcr0, slot(index));
  }
}

void continue_threads(std::uint64_t threads, const QueuedSignal* signals, std::uint64_t pending) {
  auto pid = static_cast<std::uint32_t>(call(__NR_getpid)), last = pid;
  for (std::uint64_t index = 1; index < threads; ++index)
    start_as(slot(index).thread.tid, last, slot(index));
  for (std::uint64_t index = 0; index < pending; ++index) queue(signals[index], pid);
  restore_kernel_state(slot(0).thread);
  __atomic_store_n(&go, 1, __ATOMIC_RELEASE);
  call(__NR_futex, &go, FUTEX_WAKE, 1 << 30);
  continue_thread(slot(0));
}

}  // namespace sandbox::image::loader
