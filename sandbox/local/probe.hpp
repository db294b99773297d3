#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sandbox/sandbox.hpp"

namespace sandbox::local {

// What the isolation of this machine consists of, each layer tried for real in a sandbox of its own
// below `scratch` (an existing directory that this server may write to). Blocks for up to a second
// or so; from the main thread. Never throws: what fails is a layer that is absent, with its remedy.
std::vector<Layer> probe_layers(const std::filesystem::path& scratch);

// What to do where bwrap cannot make its namespaces: the switch below `proc_sys` (/proc/sys) that
// forbids it, with the exact command; general advice where none does.
std::string namespace_remedy(const std::filesystem::path& proc_sys);

}  // namespace sandbox::local
