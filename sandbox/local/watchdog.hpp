#pragma once

#include "sandbox/local/process.hpp"

namespace sandbox::local {

// Holds a process to its memory limit where the kernel does not (Process::is_sampled); returns at
// once where it does, else when cancelled. Belongs into the task group of whoever owns the process.
awaitable<void> watch(Process& process);

}  // namespace sandbox::local
