#pragma once

#include <chrono>
#include <optional>

#include "sandbox/pandastack/guest.hpp"

namespace sandbox::pandastack {

// A session comes back to its microVM: the steps to it and to a kernel in it, before there is a
// channel. All throw Error; those that ask the relay Refusal, too, and StartError as Guest::start.

// Whether it still exists; brought to run, if so, and then kept for `ttl` of idleness.
awaitable<bool> bring_up(Guest& guest, std::chrono::seconds ttl);

// Of a kernel that was given nothing yet; the one that was there has ended.
awaitable<RelayState> fresh_kernel(Guest& guest);

// Of the kernel that is there, once nothing runs in it: it is interrupted, and in the end killed.
// nullopt when there is none, or it has ended.
awaitable<std::optional<RelayState>> kernel_at_rest(Guest& guest);

}  // namespace sandbox::pandastack
