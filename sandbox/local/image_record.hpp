#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "sandbox/local/process.hpp"

namespace sandbox::local {

// A frozen session as Sandbox::freeze leaves it, a directory:
//
//   memory        what image::freeze() wrote
//   base          the template image it refers to, if it does: a hard link where that is possible,
//                 so that it stays as long as it is needed and takes no room
//   kernel.json   ImageRecord, kImageRecord
constexpr const char* kImageRecord = "kernel.json";
struct ImageRecord {
  int version = 1;
  std::string package;  // name of the directory of install_kernel_package() it was started with
  std::string python;   // Template::python
  // Nanoseconds by which its clocks were ahead of this machine's when it was frozen (Images).
  std::int64_t monotonic_ahead = 0, boottime_ahead = 0;
};

inline std::filesystem::path memory_of(const std::filesystem::path& image) {
  return image / "memory";
}
inline std::filesystem::path base_of(const std::filesystem::path& image) { return image / "base"; }

// `sync`: it is on the disk afterwards. Throws FreezeError.
void write_record(const std::filesystem::path& image, const ImageRecord& record, bool sync);
// Throws ThawError: it is not there, damaged, or written by a newer version.
ImageRecord read_record(const std::filesystem::path& image);

// Gives an open file another name. Throws FreezeError.
void link_or_copy(const Fd& file, const std::filesystem::path& to);

// Opens a file that only this server's user (or root) can have written. Throws ThawError.
Fd open_own(const std::filesystem::path& file);

// The same open file. This one and open_own()'s are numbered as launch() wants them.
Fd duplicate(const Fd& file);

}  // namespace sandbox::local
