#pragma once

#include <sys/types.h>

#include <filesystem>
#include <optional>

#include "sandbox/local/process.hpp"

namespace sandbox::local {

// The host user of a sandbox when the server is root: an unprivileged id of its own (group the
// same) from a range that nothing else hands out, just above systemd's for containers.
constexpr uid_t kFirstId = 0x70000000;
constexpr uid_t kIdCount = 1u << 20;

// A workspace belongs to its sandbox's id. The directory's owner is the record of it, so files stay
// writable when the kernel starts again, and no table can be lost. The first time, a root server
// gives the directory a random id. nullopt when the server is not root: the sandbox then runs as
// the server's own user. Throws std::system_error.
std::optional<uid_t> workspace_owner(const std::filesystem::path& workspace);

// Keeps a second sandbox of this machine from running under the same id. Released by the kernel
// when the descriptor is closed, however its owner ends. Throws StartError while another holds it.
Fd hold_id(uid_t id);

// Becomes `id` for good, with no other group and an empty capability bounding set. Returns 0 or an
// errno; neither allocates nor throws (between clone and exec). Not setresuid(3): the C library
// would look for its other threads, which do not exist in a clone.
int become(uid_t id);

}  // namespace sandbox::local
