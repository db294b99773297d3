#include "sandbox/local/sandboxed_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

#include <algorithm>
#include <set>

#include "sandbox/local/procfs.hpp"

namespace sandbox::local {

namespace {

constexpr pid_t kInit = 1;
constexpr pid_t kProgram = 2;  // bwrap without --as-pid-1
constexpr int kKillRounds = 8;

// As waitpid's status; nullopt while it runs.
std::optional<int> reap(const Fd& pidfd) {
  siginfo_t info{};
  // P_PIDFD: the number cannot have passed to another child.
  int result = waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd.get()), &info,
                      WEXITED | WNOHANG);
  if (result == -1) return SIGKILL;  // not our child any more: somebody else has reaped it
  if (info.si_pid == 0) return std::nullopt;
  return info.si_code == CLD_EXITED ? (info.si_status & 0xff) << 8 : info.si_status;
}

struct Dying {
  Fd pidfd;
  std::unique_ptr<Cgroup> cgroup;
};

std::vector<Dying>& dying() {
  static std::vector<Dying> list;
  return list;
}

class SandboxedProcess : public Process {
 public:
  explicit SandboxedProcess(Started started) : started_(std::move(started)) {
    link = std::move(started_.link);
    out = std::move(started_.out);
    err = std::move(started_.err);
    pidfd = std::move(started_.outer.pidfd);
  }

  ~SandboxedProcess() override {
    kill();
    if (!status_) send_signal(pidfd, SIGKILL);
    dying().push_back({std::move(pidfd), std::move(started_.cgroup)});
    bury_the_dead();
  }

  pid_t program() override {
    for (const Member& member : members_of(started_.pid_namespace))
      if (member.inner_pid == kProgram) return member.pid;
    return 0;
  }

  void interrupt() override {
    if (!program_) program_ = hold_member(program(), started_.pid_namespace);
    send_signal(program_, SIGINT);
  }

  void kill_children() override {
    // In rounds, because what is killed may just have forked. A fork bomb that outruns this is left
    // to kill().
    std::set<pid_t> killed;
    for (int round = 0; round < kKillRounds; ++round) {
      bool found = false;
      for (const Member& member : members_of(started_.pid_namespace)) {
        if (member.inner_pid == kInit || member.inner_pid == kProgram) continue;
        if (!killed.insert(member.pid).second) continue;
        send_signal(hold_member(member.pid, started_.pid_namespace), SIGKILL);
        found = true;
      }
      if (!found) return;
    }
  }

  // When pid 1 of a pid namespace ends, the kernel kills all others in it.
  void kill() override { send_signal(started_.init, SIGKILL); }

  int wait_status() override {
    if (!status_) status_ = reap(pidfd);
    return status_.value_or(0);
  }

  std::uint64_t memory_kills() override {
    return sampled_kills_ + (started_.cgroup ? started_.cgroup->memory_kills() : 0);
  }

  Usage usage() override {
    Usage usage;
    for (const Member& member : members_of(started_.pid_namespace)) {
      Consumption part = consumption_of(member.pid);
      usage.memory += part.memory;
      usage.cpu_seconds += part.cpu_seconds;
      if (member.inner_pid != kInit) ++usage.processes;
    }
    if (started_.cgroup->limits(Controller::memory)) {
      usage.memory = started_.cgroup->memory();
      usage.memory_peak = started_.cgroup->memory_peak();
    }
    return usage;
  }

  bool is_sampled() const override { return !started_.cgroup->limits(Controller::memory); }

  void enforce() override {
    Member biggest;
    std::uint64_t most = 0, total = 0;
    for (const Member& member : members_of(started_.pid_namespace)) {
      std::uint64_t memory = consumption_of(member.pid).memory;
      total += memory;
      if (member.inner_pid == kProgram) total += files_in_memory(member.pid);
      if (member.inner_pid != kInit && memory > most) {
        biggest = member;
        most = memory;
      }
    }
    if (total <= started_.limits.memory) return;
    send_signal(hold_member(biggest.pid, started_.pid_namespace), SIGKILL);
    ++sampled_kills_;
  }

 private:
  // What lies in the two tmpfs of the sandbox, which belongs to none of its processes.
  std::uint64_t files_in_memory(pid_t program) const {
    std::string path = "/proc/" + std::to_string(program) + "/root";
    Fd root(open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!root || !hold_member(program, started_.pid_namespace)) return 0;
    std::uint64_t total = 0;
    for (const char* name : {"tmp", "dev/shm"}) {
      Fd directory(openat(root.get(), name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      struct statvfs status {};
      if (directory && fstatvfs(directory.get(), &status) == 0)
        total += (status.f_blocks - status.f_bfree) * status.f_frsize;
    }
    return total;
  }

  Started started_;
  Fd program_;  // pid 2 inside, once it was looked for
  std::optional<int> status_;
  std::uint64_t sampled_kills_ = 0;
};

}  // namespace

std::unique_ptr<Process> make_process(Started started) {
  return std::make_unique<SandboxedProcess>(std::move(started));
}

void bury_the_dead() {
  std::erase_if(dying(), [](const Dying& one) { return reap(one.pidfd).has_value(); });
}

}  // namespace sandbox::local
