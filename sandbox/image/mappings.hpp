#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "sandbox/image/metadata.hpp"
#include "sandbox/image/proc.hpp"

namespace sandbox::image {

// One line of /proc/PID/maps.
struct MapsLine {
  std::uint64_t start = 0, end = 0, offset = 0, inode = 0;
  std::uint32_t protection = 0;
  bool shared = false;
  std::uint64_t device = 0;  // as stat has it
  std::string path;          // as the process sees it, or [what it is]; empty: anonymous

  bool operator==(const MapsLine&) const = default;
};

// The mappings that belong to an image: without the loader's and the kernel's own.
std::vector<MapsLine> read_maps(pid_t pid);

// MappingFlags by start address, for those that have any. Walks all page tables: not while the
// process stands still.
struct Advice {
  std::uint64_t start = 0, end = 0;
  std::uint32_t flags = 0;
};
std::vector<Advice> read_advice(pid_t pid);

// Files by the paths they have inside the sandbox. Nothing is opened but for its identity, and no
// link leads outside (openat2 with RESOLVE_IN_ROOT).
class InnerRoot {
 public:
  explicit InnerRoot(pid_t pid);

  struct Found {
    std::uint64_t inode = 0, device = 0, size = 0;
    std::int64_t modified_ns = 0;
    bool temporary = false;  // on a tmpfs of the sandbox's own: a thawed one has an empty one
  };
  std::optional<Found> find(const std::string& path) const;

 private:
  Handle root_;
  std::set<std::uint64_t> outside_;  // devices mounted outside of it
};

}  // namespace sandbox::image
