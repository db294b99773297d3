#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "sandbox/files.hpp"
#include "sandbox/local/process.hpp"
#include "sandbox/workspace_path.hpp"

namespace sandbox::local {

// Files below a directory that the sandbox writes to at the same time. Every step of a path is
// resolved by the kernel (openat2 with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS), never checked
// first and used later: what is swapped in between is refused, not followed. All block, and throw
// FileError with the path named.
//
// Hard links are read like any file: the workspace is a mount of its own inside, so a link can only
// lead to a file that was in the workspace already.

// openat2 on `root`. FileError says why not; ENOENT alone is told by `missing`, if it is given.
Fd open_beneath(int root, const std::string& path, int flags, bool* missing = nullptr);

struct stat status_of(const Fd& fd, const std::string& path);

}  // namespace sandbox::local
