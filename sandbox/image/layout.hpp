#pragma once

#include <cstdint>

// The address space of every process that our loader starts, shared by loader and freezer. Only the
// reserved region has to be free for a thaw; everything else is put back where it was found. The
// kernel never picks addresses down here by itself (programs land at 0x55.., mmap at 0x7f..).
namespace sandbox::image {

inline constexpr std::uint64_t kPageSize = 4096;
inline constexpr std::uint64_t kHugePage = 2 << 20;

// Ours, and never part of an image.
inline constexpr std::uint64_t kReserved = 0x1fff00000000;
inline constexpr std::uint64_t kMovedVdso = 0x1fff80000000;  // the kernel's vdso and vvar pages
inline constexpr std::uint64_t kVdsoTable = 0x1ffff0000000;  // one page: where the proxy jumps to
inline constexpr std::uint64_t kLoader = 0x200000000000;     // the loader itself
inline constexpr std::uint64_t kLoaderTable = kLoader + 0x1000;  // LoaderTable (parasite.hpp)
inline constexpr std::uint64_t kLoaderEnd = kLoader + (16 << 20);
inline constexpr std::uint64_t kMetadata = 0x210000000000;  // of the image, while it is thawed
inline constexpr std::uint64_t kFrames = 0x220000000000;    // what threads are thawed from
inline constexpr std::uint64_t kReservedEnd = 0x2f0000000000;

// Where boot puts the program.
inline constexpr std::uint64_t kStackEnd = 0x300000000000;
inline constexpr std::uint64_t kStackSize = 8 << 20;
inline constexpr std::uint64_t kInterpreter = 0x320000000000;  // ld.so
inline constexpr std::uint64_t kProgram = 0x330000000000;      // unless it is linked elsewhere
inline constexpr std::uint64_t kHeap = 0x340000000000;         // brk; above kProgram's data: the
                                                               // kernel insists on it
inline constexpr std::uint64_t kUserEnd = 0x7ffffffff000;

inline constexpr std::uint64_t page_down(std::uint64_t address) {
  return address & ~(kPageSize - 1);
}
inline constexpr std::uint64_t page_up(std::uint64_t address) {
  return page_down(address + kPageSize - 1);
}

}  // namespace sandbox::image
