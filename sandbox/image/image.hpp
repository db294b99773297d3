#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/image/cpu.hpp"

namespace sandbox::image {

using ImageId = std::array<std::uint8_t, 16>;  // random

// A file that the process had mapped (a library), by its path inside the sandbox. A thaw refuses
// one that is not exactly the same.
struct MappedFile {
  std::string path;
  std::uint64_t size = 0;
  std::int64_t modified_ns = 0;
  std::uint64_t inode = 0;  // 0: any
};

struct ImageInfo {
  ImageId id{};
  std::optional<ImageId> base;  // the template image it refers to
  std::uint64_t bytes = 0;      // on disk
  std::chrono::nanoseconds real_time{0}, monotonic{0}, boottime{0};  // when it was frozen
  std::string kernel;                                                // "6.18.44": for the reader
  std::size_t threads = 0;
  std::uint64_t memory = 0;       // bytes of its pages, in this image alone
  std::vector<std::string> lost;  // as Frozen::lost
  std::vector<MappedFile> files;
  CpuIdentity cpu;
  std::uint32_t loader_abi = 0;
};

// What the image says of itself, with header and metadata checked (checksums, bounds, every
// reference). Throws ThawError with the reason; the contents may be hostile.
ImageInfo inspect(const std::filesystem::path& image);

// The same, and reads every page of it against its checksum: about 0.2 ms a MiB.
ImageInfo verify(const std::filesystem::path& image);

// Why it cannot be thawed on this machine as it is now, for the reader; nullopt if it can. Looks at
// the processor, the loader and those of its files that lie below one of `visible`: directories
// that have the same path inside the sandbox. The loader looks again, at everything.
std::optional<std::string> why_not_here(const ImageInfo& info,
                                        const std::vector<std::filesystem::path>& visible);

// The program that starts kernels so that they can be frozen, and thaws them; statically linked. To
// be run inside the sandbox, without any capability, as
//   loader boot PROGRAM ARGUMENTS...   instead of PROGRAM ARGUMENTS...
//   loader thaw IMAGE [BASE]           open descriptors (numbers) of an image and its base
// Descriptors 0 to 3 are handed on to the process, anything else it had open comes from the image.
// When it cannot do so it says why in a line on stderr that begins with "loader: ", and exits with
// kLoaderFailed.
//
// A thaw on another boot of this machine needs a time namespace whose monotonic and boottime clocks
// are ahead by ImageInfo::monotonic - now (where positive): else what sleeps would sleep on.
std::string_view loader_program();
inline constexpr int kLoaderFailed = 121;

}  // namespace sandbox::image
