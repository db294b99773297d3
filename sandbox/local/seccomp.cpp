#include "sandbox/local/seccomp.hpp"

#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <set>
#include <string_view>
#include <system_error>

#include "sandbox/local/descriptors.hpp"

namespace sandbox::local {

namespace {

// By what they are about. Names that an architecture does not have are skipped.
constexpr const char* kAllowed[] = {
    // memory
    "brk", "madvise", "membarrier", "memfd_create", "mincore", "mlock", "mlock2", "mlockall",
    "mmap", "mprotect", "mremap", "msync", "munlock", "munlockall", "munmap", "pkey_alloc",
    "pkey_free", "pkey_mprotect", "remap_file_pages", "get_mempolicy",
    // files: by descriptor
    "close", "close_range", "copy_file_range", "dup", "dup2", "dup3", "fadvise64", "fallocate",
    "fchdir", "fchmod", "fchown", "fcntl", "fdatasync", "flock", "fstat", "fstatfs", "fsync",
    "ftruncate", "getdents", "getdents64", "ioctl", "lseek", "pread64", "preadv", "preadv2",
    "pwrite64", "pwritev", "pwritev2", "read", "readahead", "readv", "sendfile", "splice",
    "sync_file_range", "syncfs", "tee", "write", "writev",
    // files: by name
    "access", "chdir", "chmod", "chown", "creat", "faccessat", "faccessat2", "fchmodat",
    "fchmodat2", "fchownat", "futimesat", "getcwd", "lchown", "link", "linkat", "lstat", "mkdir",
    "mkdirat", "mknod", "mknodat", "newfstatat", "open", "openat", "openat2", "readlink",
    "readlinkat", "rename", "renameat", "renameat2", "rmdir", "stat", "statfs", "statx", "symlink",
    "symlinkat", "sync", "truncate", "umask", "unlink", "unlinkat", "utime", "utimensat", "utimes",
    // extended attributes (shutil.copystat, tar)
    "fgetxattr", "flistxattr", "fremovexattr", "fsetxattr", "getxattr", "lgetxattr", "listxattr",
    "llistxattr", "lremovexattr", "lsetxattr", "removexattr", "setxattr",
    // waiting for descriptors
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_pwait", "epoll_pwait2", "epoll_wait",
    "eventfd", "eventfd2", "inotify_add_watch", "inotify_init", "inotify_init1", "inotify_rm_watch",
    "pipe", "pipe2", "poll", "ppoll", "pselect6", "select", "signalfd", "signalfd4",
    "timerfd_create", "timerfd_gettime", "timerfd_settime",
    // sockets; which families: kConditional
    "accept", "accept4", "bind", "connect", "getpeername", "getsockname", "getsockopt", "listen",
    "recvfrom", "recvmmsg", "recvmsg", "sendmmsg", "sendmsg", "sendto", "setsockopt", "shutdown",
    // processes and threads
    "arch_prctl", "capget", "capset", "execve", "execveat", "exit", "exit_group", "fork", "futex",
    "futex_waitv", "get_robust_list", "get_thread_area", "getcpu", "getpgid", "getpgrp", "getpid",
    "getppid", "getpriority", "getrlimit", "getrusage", "getsid", "gettid", "ioprio_get",
    "ioprio_set", "kill", "pidfd_open", "pidfd_send_signal", "prctl", "prlimit64",
    "restart_syscall", "rseq", "sched_get_priority_max", "sched_get_priority_min",
    "sched_getaffinity", "sched_getattr", "sched_getparam", "sched_getscheduler",
    "sched_rr_get_interval", "sched_setaffinity", "sched_setattr", "sched_setparam",
    "sched_setscheduler", "sched_yield", "seccomp", "set_robust_list", "set_thread_area",
    "set_tid_address", "setpgid", "setpriority", "setrlimit", "setsid", "vfork", "wait4", "waitid",
    // identity: without capabilities only between one's own
    "getegid", "geteuid", "getgid", "getgroups", "getresgid", "getresuid", "getuid", "setfsgid",
    "setfsuid", "setgid", "setgroups", "setregid", "setresgid", "setresuid", "setreuid", "setuid",
    // signals and clocks
    "alarm", "clock_getres", "clock_gettime", "clock_nanosleep", "getitimer", "gettimeofday",
    "nanosleep", "pause", "rt_sigaction", "rt_sigpending", "rt_sigprocmask", "rt_sigqueueinfo",
    "rt_sigreturn", "rt_sigsuspend", "rt_sigtimedwait", "rt_tgsigqueueinfo", "setitimer",
    "sigaltstack", "tgkill", "time", "timer_create", "timer_delete", "timer_getoverrun",
    "timer_gettime", "timer_settime", "times", "tkill",
    // System V shared memory and semaphores: in the sandbox's own IPC namespace
    "semctl", "semget", "semop", "semtimedop", "shmat", "shmctl", "shmdt", "shmget",
    // the machine
    "getrandom", "sysinfo", "uname"};

// Memory that no process need have mapped, so that looking at processes does not find it.
constexpr std::string_view kUnseenMemory[] = {"memfd_create", "shmget"};

// From Linux 5.12 on all architectures share the numbers of new calls. The C library tries them and
// falls back only when told ENOSYS.
constexpr int kFirstNewCall = 442;
constexpr int kLastNewCall = 511;

using Filter = std::unique_ptr<void, decltype(&seccomp_release)>;

void check(int result, const char* what) {
  if (result < 0)
    throw StartError("cannot build the system call filter: " + std::string(what) + ": " +
                     std::generic_category().message(-result));
}

Filter make_filter(std::uint32_t default_action) {
  Filter filter(seccomp_init(default_action), &seccomp_release);
  check(filter ? 0 : -ENOMEM, "seccomp_init");
  check(seccomp_attr_set(filter.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_ERRNO(EPERM)),
        "other architectures");
  return filter;
}

std::string compiled(const Filter& filter) {
  Fd file = memory_file("seccomp", {});
  check(seccomp_export_bpf(filter.get(), file.get()), "export");
  std::string program(static_cast<std::size_t>(lseek(file.get(), 0, SEEK_END)), '\0');
  ssize_t size = pread(file.get(), program.data(), program.size(), 0);
  check(size == static_cast<ssize_t>(program.size()) ? 0 : -EIO, "read");
  return program;
}

// The kernel looks only at the low half of an argument of type int.
constexpr std::uint64_t kLowHalf = 0xffffffff;
constexpr std::uint64_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                         CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
constexpr std::uint64_t kAskPersonality = 0xffffffff;

// Calls that are allowed with these first arguments only.
struct Conditional {
  const char* name;
  std::uint64_t mask;
  std::uint64_t value;
};
constexpr Conditional kConditional[] = {
    {"clone", kNewNamespaces, 0},
    {"personality", kLowHalf, PER_LINUX},
    {"personality", kLowHalf, kAskPersonality},
    {"socket", kLowHalf, AF_UNIX},
    {"socket", kLowHalf, AF_INET},
    {"socket", kLowHalf, AF_INET6},
    {"socketpair", kLowHalf, AF_UNIX},
};

std::string build_allowed(bool memory_is_counted) {
  Filter filter = make_filter(SCMP_ACT_ERRNO(EPERM));
  std::set<int> known;
  for (const char* name : kAllowed) {
    if (!memory_is_counted && std::ranges::count(kUnseenMemory, name)) continue;
    int number = seccomp_syscall_resolve_name(name);
    if (number >= 0) known.insert(number);
  }
  for (int number : known)
    check(seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, number, 0), "allow");
  for (const Conditional& call : kConditional)
    check(seccomp_rule_add(filter.get(), SCMP_ACT_ALLOW, seccomp_syscall_resolve_name(call.name), 1,
                           SCMP_A0_64(SCMP_CMP_MASKED_EQ, call.mask, call.value)),
          call.name);
  check(seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0), "clone3");
  for (int number = kFirstNewCall; number <= kLastNewCall; ++number)
    if (!known.contains(number))
      check(seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), number, 0), "new calls");
  return compiled(filter);
}

std::string build_denied() {
  Filter filter = make_filter(SCMP_ACT_ALLOW);
  for (std::uint64_t request : {TIOCSTI, TIOCLINUX})
    check(seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(ioctl), 1,
                           SCMP_A1_64(SCMP_CMP_MASKED_EQ, kLowHalf, request)),
          "ioctl");
  return compiled(filter);
}

}  // namespace

const std::string& allowed_calls(bool memory_is_counted) {
  static const std::string all = build_allowed(true), seen = build_allowed(false);
  return memory_is_counted ? all : seen;
}

const std::string& denied_requests() {
  static const std::string program = build_denied();
  return program;
}

}  // namespace sandbox::local
