#pragma once

#include <cstdint>

// Shared with the loader: no library here.
namespace sandbox::image {

// What code in an image may have chosen its instructions by (libc, OpenBLAS and numpy look once),
// and what the layout of its saved registers depends on.
struct CpuIdentity {
  std::uint32_t features[8];  // CPUID words, in the order of read_cpu()
  std::uint64_t xcr0;         // the register sets that the kernel saves
  std::uint32_t xsave_size;   // of all of them
  std::uint32_t reserved;
};

inline void cpuid(std::uint32_t leaf, std::uint32_t subleaf, std::uint32_t (&out)[4]) {
  asm volatile("cpuid"
               : "=a"(out[0]), "=b"(out[1]), "=c"(out[2]), "=d"(out[3])
               : "a"(leaf), "c"(subleaf));
}

inline CpuIdentity read_cpu() {
  // Leaf 1 ecx: OSXSAVE (27) tells about the kernel, and the local APIC bits are not in ecx/edx.
  CpuIdentity cpu{};
  std::uint32_t out[4];
  cpuid(0, 0, out);
  std::uint32_t last = out[0];
  cpuid(1, 0, out);
  cpu.features[0] = out[2];
  cpu.features[1] = out[3];
  if (last >= 7) {
    cpuid(7, 0, out);
    std::uint32_t subleaves = out[0];
    cpu.features[2] = out[1];
    cpu.features[3] = out[2] & ~(1u << 4);  // OSPKE: the kernel's choice, checked per mapping
    cpu.features[4] = out[3];
    if (subleaves >= 1) {
      cpuid(7, 1, out);
      cpu.features[5] = out[0];
    }
  }
  cpuid(0x80000001, 0, out);
  cpu.features[6] = out[2];
  cpu.features[7] = out[3];
  if (cpu.features[0] & (1u << 27)) {
    std::uint32_t low, high;
    asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    cpu.xcr0 = (std::uint64_t{high} << 32) | low;
    cpuid(0xd, 0, out);
    cpu.xsave_size = out[1];
  }
  return cpu;
}

// Register sets that a process has to ask for (AMX tiles). Not in a signal frame of one that did
// not.
inline constexpr std::uint64_t kRegistersOnDemand = 1ull << 18;

// The size of an xsave area, as in a signal frame, that holds these register sets.
inline std::uint32_t xsave_size_of(std::uint64_t sets) {
  std::uint32_t size = 512 + 64;  // x87, SSE and the header
  for (std::uint32_t set = 2; set < 63; ++set) {
    if (!(sets >> set & 1)) continue;
    std::uint32_t out[4];
    cpuid(0xd, set, out);
    if (out[0] + out[1] > size) size = out[0] + out[1];
  }
  return size;
}

// Everything `image` may use is here, and registers are laid out alike.
inline bool can_run(const CpuIdentity& image, const CpuIdentity& here) {
  for (int word = 0; word < 8; ++word)
    if (image.features[word] & ~here.features[word]) return false;
  return image.xcr0 == here.xcr0 && image.xsave_size == here.xsave_size;
}

}  // namespace sandbox::image
