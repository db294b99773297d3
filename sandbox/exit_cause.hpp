#pragma once

#include <cstdint>

#include "sandbox/kernel_channel.hpp"

namespace sandbox {

// How a program ended, for the reader: "SIGSEGV (segmentation fault)", "exit code 3". `wait_status`
// as bwrap passes it on, with 128+n for signal n.
Exit describe_exit(int wait_status, bool memory_limit_reached, std::uint64_t memory_limit);

}  // namespace sandbox
