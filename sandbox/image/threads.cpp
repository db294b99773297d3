#include "sandbox/image/threads.hpp"

#include <elf.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "sandbox/bounded_text.hpp"
#include "sandbox/image/proc.hpp"

namespace sandbox::image {

namespace {

constexpr std::size_t kMaxXsave = 12 << 10;  // AVX-512 and AMX: 11,008 bytes
constexpr std::size_t kMaxPending = 128;     // signals, each of a thread's and the process's
constexpr std::uint32_t kMaxTid = 20'000;    // each number below costs a thaw a system call

std::string task_path(const Tracee& tracee, pid_t tid, std::string_view rest) {
  return proc_path(tracee.pid(), "task/" + std::to_string(tid) + "/" + std::string(rest));
}

// As the process sees it: the last of the numbers, one a namespace.
std::uint32_t inner_tid(std::string_view status) {
  auto words = split_words(field(status, "NSpid"));
  if (words.empty()) refuse("a thread has ended");
  return static_cast<std::uint32_t>(parse_number(words.back()));
}

void capture_registers(const Tracee::Thread& thread, ThreadState& state, Metadata& metadata) {
  static_assert(sizeof state.registers == sizeof thread.registers);
  std::memcpy(state.registers, &thread.registers, sizeof state.registers);
  state.signal_mask = thread.mask;
  metadata.registers.resize((metadata.registers.size() + 63) & ~63ull);
  state.xsave_offset = metadata.registers.size();
  metadata.registers.resize(state.xsave_offset + kMaxXsave);
  iovec area{metadata.registers.data() + state.xsave_offset, kMaxXsave};
  if (ptrace(PTRACE_GETREGSET, thread.tid, NT_X86_XSTATE, &area) == -1)
    refuse_errno("cannot read extended registers");
  state.xsave_size = area.iov_len;
  metadata.registers.resize(state.xsave_offset + area.iov_len);
  constexpr std::size_t kInUse = 512;  // XSTATE_BV
  std::uint64_t sets = 0;
  if (area.iov_len < kInUse + sizeof sets) refuse("this processor has no xsave");
  std::memcpy(&sets, metadata.registers.data() + state.xsave_offset + kInUse, sizeof sets);
  if (sets & kRegistersOnDemand) refuse("a thread uses AMX tiles");
}

void capture_kernel_pointers(pid_t tid, ThreadState& state) {
  __ptrace_rseq_configuration rseq{};
  if (ptrace(PTRACE_GET_RSEQ_CONFIGURATION, tid, sizeof rseq, &rseq) > 0) {
    state.rseq = rseq.rseq_abi_pointer;
    state.rseq_size = rseq.rseq_abi_size;
    state.rseq_signature = rseq.signature;
  }
  void* head = nullptr;
  std::size_t size = 0;
  if (syscall(SYS_get_robust_list, tid, &head, &size) == -1)
    refuse_errno("cannot read the list of robust locks");
  state.robust_list = reinterpret_cast<std::uint64_t>(head);
  state.robust_list_size = size;
}

void capture_signals(pid_t tid, std::uint32_t inner, bool shared, Metadata& metadata) {
  static_assert(sizeof(siginfo_t) == sizeof(QueuedSignal::info));
  std::vector<siginfo_t> pending(kMaxPending);
  __ptrace_peeksiginfo_args arguments{};
  arguments.flags = shared ? PTRACE_PEEKSIGINFO_SHARED : 0;
  arguments.nr = kMaxPending;
  long count = ptrace(PTRACE_PEEKSIGINFO, tid, &arguments, pending.data());
  for (long index = 0; index < count; ++index) {
    QueuedSignal signal{};
    signal.tid = shared ? 0 : inner;
    std::memcpy(signal.info, &pending[static_cast<std::size_t>(index)], sizeof signal.info);
    metadata.signals.push_back(signal);
  }
}

void capture_process(const ParasiteResult& claims, ProcessState& process) {
  std::copy(std::begin(claims.actions), std::end(claims.actions), process.actions);
  std::memcpy(process.timers, claims.timers, sizeof process.timers);
  std::memcpy(process.limits, claims.limits, sizeof process.limits);
  process.subreaper = claims.subreaper;
  process.memory.brk = claims.brk;
}

// Fields of /proc/PID/stat by their number in proc(5).
void capture_memory_fields(pid_t pid, MemoryFields& memory) {
  std::string stat = read_proc(proc_path(pid, "stat")).value_or("");
  std::size_t after_name = stat.rfind(')');
  if (after_name == stat.npos) refuse("the process has ended");
  auto words = split_words(std::string_view(stat).substr(after_name + 1));
  auto number = [&](std::size_t field) {
    return field - 3 < words.size() ? parse_number(words[field - 3]) : 0;
  };
  memory.start_code = number(26);
  memory.end_code = number(27);
  memory.start_stack = number(28);
  memory.start_data = number(45);
  memory.end_data = number(46);
  memory.start_brk = number(47);
  memory.arg_start = number(48);
  memory.arg_end = number(49);
  memory.env_start = number(50);
  memory.env_end = number(51);
}

void capture_auxv(pid_t pid, Metadata& metadata) {
  std::string bytes = read_proc(proc_path(pid, "auxv")).value_or("");
  constexpr std::size_t kMax = 64;  // words; the kernel keeps some 40
  metadata.auxv.resize(std::min(bytes.size() / 8, kMax));
  std::memcpy(metadata.auxv.data(), bytes.data(), metadata.auxv.size() * 8);
}

void refuse_what_cannot_return(std::string_view status) {
  if (field(status, "x86_Thread_features").find("shstk") != std::string_view::npos)
    refuse(
        "the process uses shadow stacks (start it with "
        "GLIBC_TUNABLES=glibc.cpu.x86_shstk=off)");
}

}  // namespace

void capture_threads(Tracee& tracee, Metadata& metadata) {
  for (std::size_t index = 0; index < tracee.threads().size(); ++index) {
    const Tracee::Thread& thread = tracee.threads()[index];
    std::string status = read_proc(task_path(tracee, thread.tid, "status")).value_or("");
    refuse_what_cannot_return(status);
    ThreadState state{};
    state.tid = inner_tid(status);
    if (state.tid > kMaxTid)
      refuse("a thread has the number " + std::to_string(state.tid) +
             ": so many were started before it that a thaw would take too long");
    capture_registers(thread, state, metadata);
    capture_kernel_pointers(thread.tid, state);
    capture_signals(thread.tid, state.tid, false, metadata);
    std::string name = read_proc(task_path(tracee, thread.tid, "comm")).value_or("");
    if (name.ends_with('\n')) name.pop_back();
    name.copy(state.name, sizeof state.name - 1);
    ParasiteResult claims = tracee.run_parasite(index);
    state.clear_tid = claims.clear_tid;
    state.alternate_stack = claims.alternate_stack;
    state.alternate_stack_size = claims.alternate_stack_size;
    state.alternate_stack_flags = claims.alternate_stack_flags;
    state.timer_slack = claims.timer_slack;
    if (index == 0) {
      capture_process(claims, metadata.process);
      std::string_view mask = field(status, "Umask");
      metadata.process.umask = static_cast<std::uint32_t>(parse_number(mask, 8));
    }
    metadata.threads.push_back(state);
  }
  std::ranges::sort(metadata.threads.begin() + 1, metadata.threads.end(), {}, &ThreadState::tid);
  metadata.process.pid = metadata.threads[0].tid;
  capture_signals(tracee.pid(), 0, true, metadata);
  capture_memory_fields(tracee.pid(), metadata.process.memory);
  capture_auxv(tracee.pid(), metadata);
}

std::vector<std::string> others_in_sandbox(const Tracee& tracee) {
  if (!read_proc(task_path(tracee, tracee.pid(), "children")))
    refuse("this kernel does not say which children a process has (CONFIG_PROC_CHILDREN)");
  std::vector<std::string> others;
  auto add_children = [&](const std::string& path) {
    std::string text = read_proc(path).value_or("");
    for (std::string_view word : split_words(text)) {
      auto child = static_cast<pid_t>(parse_number(word));
      if (child == tracee.pid()) continue;
      std::string name = read_proc(proc_path(child, "comm")).value_or("");
      std::string status = read_proc(proc_path(child, "status")).value_or("");
      bool ended = field(status, "State").starts_with('Z');
      auto numbers = split_words(field(status, "NSpid"));
      others.push_back("process " + std::string(numbers.empty() ? word : numbers.back()) + " (" +
                       readable_end(name.substr(0, name.find('\n')), 16) + ")" +
                       (ended ? ", which has ended but was not waited for" : ""));
    }
  };
  for (const Tracee::Thread& thread : tracee.threads())
    add_children(task_path(tracee, thread.tid, "children"));
  // Orphans are the init's. What has ended there is none of the process's concern.
  std::string status = read_proc(proc_path(tracee.pid(), "status")).value_or("");
  std::string init(field(status, "PPid").substr(0, field(status, "PPid").find('\n')));
  std::size_t own = others.size();
  add_children("/proc/" + init + "/task/" + init + "/children");
  std::erase_if(others, [&, index = std::size_t{0}](const std::string& text) mutable {
    return index++ >= own && text.ends_with("waited for");
  });
  return others;
}

}  // namespace sandbox::image
