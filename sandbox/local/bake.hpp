#pragma once

#include <filesystem>

#include "sandbox/local/bring_up.hpp"

namespace sandbox::local {

// As bake() in backend.hpp, with a backend's setting. An empty path: another server is making the
// same image right now.
awaitable<std::filesystem::path> bake_in(Setting& setting, Template python);

}  // namespace sandbox::local
