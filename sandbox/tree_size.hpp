#pragma once

// What a directory holds, however code in a sandbox has nested it: a tree ten thousand levels deep
// needs neither as many descriptors nor paths of that length.

#include <cstdint>

namespace sandbox {

// The bytes that everything below the directory takes up on disk: each file once, however many
// names it has, and an empty one as 4 KiB, since inodes are limited too. Counts no further than
// `enough`. Follows no links; what has gone, or cannot be opened, while we look is not counted.
// Blocks; for a pool thread.
std::uint64_t tree_size(int directory, std::uint64_t enough);

}  // namespace sandbox
