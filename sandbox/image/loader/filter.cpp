#include <asm/unistd.h>
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/mman.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/mman.h>

#include "sandbox/image/loader/thaw.hpp"

// A private mapping of a file behaves like anonymous memory, with two exceptions:
//   madvise(MADV_DONTNEED) brings back the file's bytes where anonymous memory would be zero, and
//   allocators (jemalloc) rely on the zeros;
//   mremap to a larger size goes on into the file, or past its end (SIGBUS).
// Both are refused with EINVAL in the hulls, as the kernel may refuse them; every caller copes.
namespace sandbox::image::loader {

namespace {

constexpr int kMaxInstructions = 32 + 16 * Hulls::kMax;
sock_filter program[kMaxInstructions];
unsigned short size = 0;

constexpr std::uint32_t kNumber = offsetof(seccomp_data, nr);
constexpr std::uint32_t kArchitecture = offsetof(seccomp_data, arch);
constexpr std::uint32_t low(int argument) {
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 8 * argument);
}
constexpr std::uint32_t high(int argument) { return low(argument) + 4; }

void add(sock_filter instruction) { program[size++] = instruction; }
void load(std::uint32_t offset) { add(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset)); }
void give(std::uint32_t answer) { add(BPF_STMT(BPF_RET | BPF_K, answer)); }
void allow() { give(SECCOMP_RET_ALLOW); }
void refuse() { give(SECCOMP_RET_ERRNO | EINVAL); }
// Skips `yes` or `no` instructions.
void jump(int comparison, std::uint32_t value, int yes, int no) {
  add(BPF_JUMP(static_cast<unsigned short>(BPF_JMP | comparison | BPF_K), value,
               static_cast<unsigned char>(yes), static_cast<unsigned char>(no)));
}

// Of mremap: goes on if the new size (argument 2) is larger than the old (argument 1).
void allow_unless_growing() {
  load(high(1));
  add(BPF_STMT(BPF_MISC | BPF_TAX, 0));
  load(high(2));
  add(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_X, 0, 6, 0));
  add(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 4));
  load(low(1));
  add(BPF_STMT(BPF_MISC | BPF_TAX, 0));
  load(low(2));
  add(BPF_JUMP(BPF_JMP | BPF_JGT | BPF_X, 0, 1, 0));
  allow();
}

// Refuses if the first argument lies in the range, else goes on behind it.
void refuse_in(std::uint64_t start, std::uint64_t end) {
  auto start_high = static_cast<std::uint32_t>(start >> 32);
  auto start_low = static_cast<std::uint32_t>(start);
  auto end_high = static_cast<std::uint32_t>(end >> 32);
  auto end_low = static_cast<std::uint32_t>(end);
  load(high(0));
  jump(BPF_JGT, start_high, 3, 0);
  jump(BPF_JEQ, start_high, 0, 8);
  load(low(0));
  jump(BPF_JGE, start_low, 0, 6);
  load(high(0));
  jump(BPF_JGT, end_high, 4, 0);
  jump(BPF_JEQ, end_high, 0, 2);
  load(low(0));
  jump(BPF_JGE, end_low, 1, 0);
  refuse();
}

}  // namespace

void install_filter(const Hulls& hulls) {
  load(kArchitecture);
  jump(BPF_JEQ, AUDIT_ARCH_X86_64, 1, 0);
  allow();  // the sandbox's own filter refuses other architectures' calls
  load(kNumber);
  jump(BPF_JEQ, __NR_process_madvise, 0, 1);
  refuse();
  jump(BPF_JEQ, __NR_madvise, 2, 0);
  jump(BPF_JEQ, __NR_mremap, 5, 0);
  allow();
  load(low(2));
  constexpr int kMremap = 10;  // instructions of allow_unless_growing
  jump(BPF_JEQ, MADV_DONTNEED, kMremap + 2, 0);
  jump(BPF_JEQ, MADV_DONTNEED_LOCKED, kMremap + 1, 0);
  allow();
  allow_unless_growing();
  for (int index = 0; index < hulls.count; ++index)
    refuse_in(hulls.range[index].start, hulls.range[index].end);
  allow();

  sock_fprog all{size, program};
  check(call(__NR_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "cannot give up privileges");
  check(call(__NR_seccomp, SECCOMP_SET_MODE_FILTER, 0, &all), "cannot install a filter");
}

}  // namespace sandbox::image::loader
