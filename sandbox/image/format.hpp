#pragma once

#include <cstdint>

#include "sandbox/image/cpu.hpp"
#include "sandbox/image/layout.hpp"

// An image file, shared by loader and freezer:
//
//   0         Header, one page
//   4096      data: pages of memory, contents of pipes and files; sparse where they are zero
//   ...       metadata, from a page boundary to the end of the file: arrays of what follows, each
//             where its Section says
//
// All little endian. Nothing in a file is believed: image.cpp checks every number of it before the
// server uses it, and the loader, which has no more rights than the process that was frozen, checks
// that the file is whole.
namespace sandbox::image {

inline constexpr std::uint64_t kMagic = 0x31454741'4d494b50;  // "PKIMAGE1"
inline constexpr std::uint32_t kFormatVersion = 1;

// An array in the metadata.
struct Section {
  std::uint64_t offset;  // in the metadata; a multiple of 64
  std::uint64_t count;   // of elements
};

enum Sections : std::uint32_t {
  kProcess,      // ProcessState, one
  kThreads,      // ThreadState; the first is the main thread, the others by ascending tid
  kRegisters,    // bytes: xsave areas
  kMappings,     // Mapping, by address
  kRuns,         // Run, by address
  kFiles,        // File
  kDescriptors,  // Descriptor, by number
  kWatches,      // Watch
  kSignals,      // QueuedSignal
  kHotRuns,      // HotRun, by address
  kAuxv,         // std::uint64_t
  kStrings,      // bytes: NUL-terminated, referred to by offset; [0] is empty
  kLost,         // std::uint32_t: strings, for the reader
  kExtents,      // Extent, by offset: covers all data
  kSectionCount
};

struct Header {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t header_crc;  // of the whole struct, with this field 0
  std::uint64_t file_size;
  std::uint64_t metadata_offset;
  std::uint64_t metadata_size;
  std::uint32_t metadata_crc;
  std::uint32_t page_size;
  std::uint8_t id[16];
  std::uint8_t base_id[16];  // zeros: refers to no other image
  std::uint32_t loader_abi;  // checksum of the vdso proxy, the only code of ours that images call
  std::uint32_t reserved;
  CpuIdentity cpu;
  std::int64_t real_ns, monotonic_ns, boottime_ns;
  char kernel[64];
  Section sections[kSectionCount];
};
static_assert(sizeof(Header) <= kPageSize);

struct SignalAction {  // as rt_sigaction has it
  std::uint64_t handler, flags, restorer, mask;
};

inline constexpr int kSignalCount = 64;
inline constexpr int kLimitCount = 16;

// What prctl(PR_SET_MM_MAP) takes, without its last three members.
struct MemoryFields {
  std::uint64_t start_code, end_code, start_data, end_data, start_brk, brk, start_stack;
  std::uint64_t arg_start, arg_end, env_start, env_end;
};

struct ProcessState {
  MemoryFields memory;
  SignalAction actions[kSignalCount];    // of signal n + 1
  std::uint64_t timers[3][4];            // setitimer
  std::uint64_t limits[kLimitCount][2];  // soft, hard
  std::uint32_t umask;
  std::uint32_t directory;  // string
  std::uint32_t pid;        // inside
  std::uint32_t subreaper;
};

struct ThreadState {
  std::uint64_t registers[27];  // user_regs_struct
  std::uint64_t signal_mask;
  std::uint64_t robust_list, robust_list_size;
  std::uint64_t rseq;
  std::uint64_t clear_tid;
  std::uint64_t alternate_stack, alternate_stack_size;
  std::uint64_t xsave_offset;  // in kRegisters, a multiple of 64
  std::uint64_t xsave_size;
  std::uint64_t timer_slack;
  std::uint32_t rseq_size, rseq_signature;
  std::uint32_t alternate_stack_flags;
  std::uint32_t tid;  // inside
  char name[16];
};

enum class Source : std::uint32_t {
  anonymous,         // zeros, but for the runs
  image,             // this file at `offset`
  base,              // the base image at `offset`
  file,              // `file`, at `offset`
  shared_anonymous,  // zeros, but for the runs
  descriptor,        // shared, of the file open as descriptor `file`, at `offset`
};

enum MappingFlags : std::uint32_t {
  kShared = 1,
  kHuge = 2,  // the madvise of this name, and so on
  kNoHuge = 4,
  kDontFork = 8,
  kWipeOnFork = 16,  // a thaw is a fork: it comes back as zeros
  kDontDump = 32,
  kLocked = 64,
};

struct Mapping {
  std::uint64_t start, end, offset;
  std::uint32_t protection;  // PROT_*
  Source source;
  std::uint32_t file;  // index, or a descriptor
  std::uint32_t flags;
  std::uint32_t first_run, runs;  // what differs from the source
};

struct Run {
  std::uint64_t address, length, offset;  // of this file
  std::uint32_t mapped;                   // 1: map it, 0: copy it
  std::uint32_t reserved;
};

struct File {
  std::uint64_t size;
  std::int64_t modified_ns;
  std::uint64_t inode;       // 0: any, it may be a copy
  std::uint32_t path;        // string; inside
  std::uint32_t may_change;  // shared mappings only: its contents are the user's
};

enum class DescriptorKind : std::uint32_t {
  supplied,     // 0 to 3: given to the loader
  duplicate,    // of `other`
  file,         // opened by path
  saved_file,   // made again from `contents`; by path if it had one; value: its old inode
  pipe,         // `other`: the descriptor of the other end, or -1 if that is closed
  socket_pair,  // likewise; value: its type
  eventfd,      // value: its count; extra: 1 for a semaphore
  epoll,        // see Watch
  timerfd,      // value: its clock; extra: unread expirations
  signalfd,     // value: its mask
  lost,         // its number is kept busy, everything done to it fails with EBADF
};

struct Descriptor {
  std::int32_t number;
  DescriptorKind kind;
  std::uint32_t flags;  // as open(2), with O_CLOEXEC
  std::int32_t other;
  std::uint32_t path;  // string; 0: none
  std::uint32_t mode;
  std::uint64_t position;
  std::uint64_t value;
  std::uint64_t extra;
  std::uint64_t contents, contents_size;  // of this file: unread bytes, or a whole file
  std::uint64_t full_size;                // of a saved file, which may end in a hole
  std::uint64_t timer[4];                 // timerfd: interval, remaining; seconds and nanoseconds
};

struct Watch {  // epoll_ctl
  std::int32_t epoll, target;
  std::uint32_t events, reserved;
  std::uint64_t data;
};

struct QueuedSignal {
  std::uint32_t tid;  // 0: of the process
  std::uint32_t reserved;
  std::uint8_t info[128];  // siginfo
};

struct HotRun {
  std::uint64_t address, length;
};

struct Extent {
  std::uint64_t offset, length;
  std::uint32_t crc;
  std::uint32_t reserved;
};

inline constexpr std::uint64_t kElementSize[kSectionCount] = {
    sizeof(ProcessState),  sizeof(ThreadState),   1,
    sizeof(Mapping),       sizeof(Run),           sizeof(File),
    sizeof(Descriptor),    sizeof(Watch),         sizeof(QueuedSignal),
    sizeof(HotRun),        sizeof(std::uint64_t), 1,
    sizeof(std::uint32_t), sizeof(Extent)};

// CRC-32C, with the instruction that every x86-64 processor since 2009 has (SSE 4.2).
inline std::uint32_t crc32c(const void* bytes, std::uint64_t size, std::uint32_t start = 0) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  std::uint64_t crc = ~start;
  for (; size >= 8; size -= 8, at += 8) {
    std::uint64_t word;
    __builtin_memcpy(&word, at, 8);
    asm("crc32q %1, %0" : "+r"(crc) : "r"(word));
  }
  for (; size > 0; --size, ++at) asm("crc32b %1, %0" : "+r"(crc) : "r"(*at));
  return ~static_cast<std::uint32_t>(crc);
}

}  // namespace sandbox::image
