#include "sandbox/local/launcher.hpp"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "sandbox/local/descriptors.hpp"
#include "sandbox/local/ids.hpp"

#ifdef PYKEEP_TSAN
extern "C" void __tsan_ignore_thread_begin();
#endif

namespace sandbox::local {

namespace {

// Everything that the child needs, laid out before it exists.
struct Prepared {
  const Plan& plan;
  pid_t parent = 0;
  int go = -1;  // readable once the parent has placed the child
  // What maps to itself in a new user namespace, as the kernel reads it from uid_map and gid_map.
  std::string own_user, own_group;
  std::vector<const char*> argv;
  std::vector<std::string> targets;  // of plan.staged
  std::vector<int> sources;          // their descriptors, filled in by the child
};

// The child runs these in order, between clone and exec. They must not allocate, throw or log, and
// call no C library function that looks for other threads. Each returns 0 or an errno.

int check(long result) { return result == -1 ? errno : 0; }

int die_with_server(Prepared& prepared) {
  if (int error = check(prctl(PR_SET_PDEATHSIG, SIGKILL))) return error;
  return getppid() == prepared.parent ? 0 : ESRCH;  // it died before the call above
}

int wait_until_placed(Prepared& prepared) {
  char byte;
  for (;;) {
    ssize_t size = read(prepared.go, &byte, 1);
    if (size == 1) return 0;
    if (size == 0) _exit(127);  // the parent gave up
    if (errno != EINTR) return errno;
  }
}

int leave_terminal(Prepared&) { return check(setsid()); }

int reset_signals(Prepared&) {
  for (int signal = 1; signal < NSIG; ++signal)
    if (signal != SIGKILL && signal != SIGSTOP) ::signal(signal, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  return check(sigprocmask(SIG_SETMASK, &none, nullptr));
}

int volunteer_for_oom(Prepared& prepared) {
  int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (file == -1) return errno;
  const std::string& score = prepared.plan.oom_score;
  return check(write(file, score.data(), score.size()));
}

int lower_priority(Prepared& prepared) {
  errno = 0;
  if (prepared.plan.niceness && nice(prepared.plan.niceness) == -1) return errno;
  return 0;
}

int open_sources(Prepared& prepared) {
  if (!prepared.plan.user) return 0;
  // Opened inside the new namespace: a bind mount cannot come from another one.
  if (int error = check(unshare(CLONE_NEWNS))) return error;
  if (int error = check(mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr))) return error;
  for (std::size_t index = 0; index < prepared.sources.size(); ++index) {
    int source = open(prepared.plan.staged[index].source.c_str(), O_PATH | O_CLOEXEC);
    if (source == -1) return errno;
    prepared.sources[index] = source;
  }
  return 0;
}

int stage_sources(Prepared& prepared) {
  if (!prepared.plan.user) return 0;
  if (int error = check(mount("tmpfs", kStaging, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755")))
    return error;
  for (std::size_t index = 0; index < prepared.sources.size(); ++index) {
    const char* target = prepared.targets[index].c_str();
    long made = prepared.plan.staged[index].is_directory ? mkdir(target, 0755)
                                                         : mknod(target, S_IFREG | 0644, 0);
    if (int error = check(made)) return error;
    char source[32];
    std::snprintf(source, sizeof source, "/proc/self/fd/%d", prepared.sources[index]);
    if (int error = check(mount(source, target, nullptr, MS_BIND | MS_REC, nullptr))) return error;
  }
  return 0;
}

int write_text(const char* path, std::string_view text) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  if (file == -1) return errno;
  int error = check(write(file, text.data(), text.size()));
  close(file);
  return error;
}

// The children of this process, bwrap's first of all, will be in the new namespace. Only root may
// make one as he is; another user does it in a user namespace, where bwrap makes its own.
int shift_clocks(Prepared& prepared) {
  if (prepared.plan.clock_offsets.empty()) return 0;
  bool is_root = prepared.plan.user.has_value();
  if (int error = check(unshare(CLONE_NEWTIME | (is_root ? 0 : CLONE_NEWUSER)))) return error;
  if (!is_root) {
    if (int error = write_text("/proc/self/setgroups", "deny")) return error;
    if (int error = write_text("/proc/self/uid_map", prepared.own_user)) return error;
    if (int error = write_text("/proc/self/gid_map", prepared.own_group)) return error;
  }
  return write_text("/proc/self/timens_offsets", prepared.plan.clock_offsets);
}

int limit_resources(Prepared& prepared) { return apply(prepared.plan.limits); }

int become_user(Prepared& prepared) { return prepared.plan.user ? become(*prepared.plan.user) : 0; }

int place_descriptors(Prepared& prepared) {
  const std::vector<int>& wanted = prepared.plan.descriptors;
  for (std::size_t number = 0; number < wanted.size(); ++number)
    if (int error = check(dup2(wanted[number], static_cast<int>(number)))) return error;
  // Not closed but close-on-exec: the report of a failed exec still has to get out.
  return check(syscall(SYS_close_range, wanted.size(), ~0u, CLOSE_RANGE_CLOEXEC));
}

int execute(Prepared& prepared) {
  const char* no_environment = nullptr;
  return check(execve(prepared.argv[0], const_cast<char* const*>(prepared.argv.data()),
                      const_cast<char* const*>(&no_environment)));
}

constexpr struct {
  const char* name;
  int (*run)(Prepared&);
} kSteps[] = {
    {"die with the server", die_with_server},
    {"wait for the control group", wait_until_placed},
    {"leave the terminal", leave_terminal},
    {"reset signals", reset_signals},
    {"raise the out-of-memory score", volunteer_for_oom},
    {"lower the priority", lower_priority},
    {"open what the sandbox may see", open_sources},
    {"stage what the sandbox may see", stage_sources},
    {"shift the clocks", shift_clocks},
    {"switch to an unprivileged user", become_user},
    {"die with the server", die_with_server},  // again: changing the user had cleared it
    {"place descriptors", place_descriptors},
    // Last: they are the new program's. This process may be beyond them (ThreadSanitizer's memory
    // counts for RLIMIT_DATA), and what is called here would fail.
    {"limit resources", limit_resources},
    {"execute bwrap", execute},
};

// ThreadSanitizer does not know of clone3: to it the child is a thread of the server that closes
// descriptors which other threads use. (After a fork() it does this itself.)
void sanitizer_looks_away() {
#ifdef PYKEEP_TSAN
  __tsan_ignore_thread_begin();
#endif
}

struct Failure {
  int step = 0;
  int error = 0;
};

[[noreturn]] void become_program(Prepared& prepared, int report_fd) {
  sanitizer_looks_away();
  Failure failure;
  for (;; ++failure.step) {
    failure.error = kSteps[failure.step].run(prepared);
    if (failure.error) break;
  }
  (void)!write(report_fd, &failure, sizeof failure);
  _exit(127);
}

Spawned clone_child(Prepared& prepared, int report_fd) {
  int pidfd = -1;
  clone_args args{};
  args.flags = CLONE_PIDFD;
  args.pidfd = reinterpret_cast<std::uint64_t>(&pidfd);
  args.exit_signal = SIGCHLD;
  auto pid = static_cast<pid_t>(syscall(SYS_clone3, &args, sizeof args));
  if (pid == 0) become_program(prepared, report_fd);
  if (pid == -1)
    throw StartError("cannot start a process: " + std::generic_category().message(errno));
  return {pid, Fd(pidfd)};
}

void end(const Spawned& spawned) {
  kill(spawned.pid, SIGKILL);
  while (waitpid(spawned.pid, nullptr, 0) == -1 && errno == EINTR) {
  }
}

}  // namespace

std::string staged_path(std::size_t index) {
  return std::string(kStaging) + "/" + std::to_string(index);
}

Spawned spawn(const Plan& plan, const std::function<void(pid_t)>& place) {
  Pipe report = make_pipe();
  Pipe go = make_pipe();
  Prepared prepared{.plan = plan, .parent = getpid(), .go = go.read.get()};
  auto itself = [](auto id) { return std::to_string(id) + " " + std::to_string(id) + " 1\n"; };
  prepared.own_user = itself(geteuid());
  prepared.own_group = itself(getegid());
  for (const std::string& argument : plan.arguments) prepared.argv.push_back(argument.c_str());
  prepared.argv.push_back(nullptr);
  for (std::size_t index = 0; index < plan.staged.size(); ++index)
    prepared.targets.push_back(staged_path(index));
  prepared.sources.resize(plan.staged.size());

  Spawned spawned = clone_child(prepared, report.write.get());
  report.write = Fd();
  try {
    place(spawned.pid);
  } catch (...) {
    end(spawned);
    throw;
  }
  (void)!write(go.write.get(), "!", 1);

  Failure failure;
  ssize_t size;
  do size = read(report.read.get(), &failure, sizeof failure);
  while (size == -1 && errno == EINTR);
  if (size == 0) return spawned;  // end of file: it is the program now
  end(spawned);
  throw StartError(std::string("cannot start the sandbox: ") + kSteps[failure.step].name + ": " +
                   std::generic_category().message(failure.error));
}

}  // namespace sandbox::local
