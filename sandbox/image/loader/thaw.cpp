#include "sandbox/image/loader/thaw.hpp"

#include <fcntl.h>
#include <linux/prctl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>

// Becomes the process in an image. Nothing of it runs before the last step, so that a failure on
// the way leaves nothing half done.
namespace sandbox::image::loader {

namespace {

void block_signals() {
  std::uint64_t all = ~0ull;
  call(__NR_rt_sigprocmask, SIG_SETMASK, &all, nullptr, sizeof all);
}

// The kernel's stack, and everything else it mapped for us.
void unmap_everything() {
  check(call(__NR_munmap, kReservedEnd, kUserEnd - kReservedEnd), "cannot unmap");
  check(call(__NR_munmap, kPageSize, kReserved - kPageSize), "cannot unmap");
}

void describe_memory(const Image& image) {
  const MemoryFields& saved = image.process().memory;
  prctl_mm_map fields{};
  static_assert(sizeof saved == offsetof(prctl_mm_map, auxv));
  memcpy(&fields, &saved, sizeof saved);
  fields.auxv = const_cast<__u64*>(image.begin<__u64>(kAuxv));
  fields.auxv_size = static_cast<__u32>(image.count(kAuxv) * sizeof(__u64));
  fields.exe_fd = ~0u;
  check(call(__NR_prctl, PR_SET_MM, PR_SET_MM_MAP, &fields, sizeof fields, 0),
        "this kernel does not let a process describe its memory (PR_SET_MM_MAP)");
}

void restore_actions(const ProcessState& process) {
  for (int signal = 1; signal <= kSignalCount; ++signal)
    if (signal != SIGKILL && signal != SIGSTOP)
      call(__NR_rt_sigaction, signal, &process.actions[signal - 1], 0, sizeof(std::uint64_t));
  for (int timer = 0; timer < 3; ++timer) {
    const std::uint64_t(&value)[4] = process.timers[timer];
    if (value[2] || value[3]) call(__NR_setitimer, timer, value, 0);
  }
}

// The sandbox's limits are the launcher's choice. A limit that the process had lowered for itself
// comes back, as far as the new sandbox has as much.
void restore_limits(const ProcessState& process) {
  for (int resource = 0; resource < kLimitCount; ++resource) {
    const std::uint64_t(&saved)[2] = process.limits[resource];
    rlimit now{};
    if (saved[0] >= saved[1] || call(__NR_prlimit64, 0, resource, 0, &now) < 0) continue;
    now.rlim_cur = saved[0] < now.rlim_max ? saved[0] : now.rlim_max;
    call(__NR_prlimit64, 0, resource, &now, 0);
  }
}

void restore_process(const Image& image) {
  const ProcessState& process = image.process();
  if (static_cast<std::uint32_t>(call(__NR_getpid)) != process.pid)
    fail("the process has another number in this sandbox");
  check(call(__NR_chdir, image.string(process.directory)), "cannot go to its directory",
        image.string(process.directory));
  call(__NR_umask, process.umask);
  if (process.subreaper) call(__NR_prctl, PR_SET_CHILD_SUBREAPER, 1);
  restore_actions(process);
  restore_limits(process);
}

constexpr std::uint64_t kMaxSignals = 256;
QueuedSignal signals[kMaxSignals];

}  // namespace

void thaw(char** arguments) {
  block_signals();
  Image image = open_image(arguments[0], arguments[1]);
  set_up_vdso();
  unmap_everything();
  restore_descriptors(image);
  Hulls hulls;
  restore_memory(image, hulls);
  describe_memory(image);
  restore_process(image);
  prepare_threads(image);
  std::uint64_t threads = image.count(kThreads), pending = image.count(kSignals);
  if (pending > kMaxSignals) pending = kMaxSignals;
  memcpy(signals, image.begin<QueuedSignal>(kSignals), pending * sizeof(QueuedSignal));
  call(__NR_close, image.fd);
  if (image.base_fd >= 0) call(__NR_close, image.base_fd);
  if (image.report >= 0) {
    call(__NR_close, image.report);
    report_to(2);
  }
  call(__NR_munmap, kMetadata, kPageSize + page_up(image.header().metadata_size));
  install_filter(hulls);
  continue_threads(threads, signals, pending);
}

}  // namespace sandbox::image::loader
