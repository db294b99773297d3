#pragma once

#include <cstdint>

#include "sandbox/image/format.hpp"

// What the freezer runs inside a frozen process. The code is part of the loader, which stays
// mapped: nothing has to be injected.
namespace sandbox::image {

// At kLoaderTable in every loader. The freezer reads it from its own copy of the loader, never from
// the process.
struct LoaderTable {
  std::uint64_t magic;
  std::uint64_t parasite;          // rdi: 1 for the main thread, else 0; ends with int3
  std::uint64_t parasite_fork;     // clone(CLONE_PARENT); ends with int3, rax: the result
  std::uint64_t stack_end;         // for both
  std::uint64_t result;            // ParasiteResult
  std::uint64_t proxy, proxy_end;  // vdso_proxy.S
};
inline constexpr std::uint64_t kLoaderMagic = 0x31444c'504b'5950;

// What only the thread itself can ask the kernel for. Lies in memory of the process: claims.
struct ParasiteResult {
  std::uint64_t clear_tid;
  std::uint64_t alternate_stack, alternate_stack_size;
  std::uint64_t timer_slack;
  std::uint32_t alternate_stack_flags;
  std::uint32_t subreaper;  // from here on: main thread only
  std::uint64_t brk;
  SignalAction actions[kSignalCount];
  std::uint64_t timers[3][4];
  std::uint64_t limits[kLimitCount][2];
};

}  // namespace sandbox::image
