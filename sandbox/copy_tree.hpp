#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace sandbox {

// A tree could not be copied, or not whole: for the reader. What was copied so far is still there.
struct CopyError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct CopyReport {
  std::uint64_t bytes = 0;           // of data, whether copied or shared
  std::vector<std::string> skipped;  // "pipe: not a file"; the first ones by name, then a count
};

// Copies what is in a directory that code in a sandbox has filled, and may be filling right now,
// into an empty one: files (sharing their blocks where the file system can, FICLONE), directories
// and links as links, with permissions and times. Links are never followed, holes stay holes.
// Sockets, pipes and devices are skipped, and so is what lies deeper than 100 directories or cannot
// be read. Everything that is made belongs to the owner of `to`. Throws CopyError when there is
// more than `cap` bytes, or writing fails. Blocks.
CopyReport copy_tree(const std::filesystem::path& from, const std::filesystem::path& to,
                     std::uint64_t cap);

}  // namespace sandbox
