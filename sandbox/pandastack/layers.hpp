#pragma once

#include <vector>

#include "sandbox/pandastack/house.hpp"
#include "sandbox/sandbox.hpp"

namespace sandbox::pandastack {

// What sandboxes at PandaStack are, with our kernel or with the vendor's own (`is_repl`).
Capabilities capabilities(bool is_repl);

// For doctor: whether the API is reached, whether it takes the key, and what isolation there is.
// The template and the way to a kernel show when one is started.
awaitable<std::vector<Layer>> check_layers(House& house);

}  // namespace sandbox::pandastack
