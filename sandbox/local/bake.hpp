#pragma once

#include <filesystem>

#include "sandbox/local/bring_up.hpp"

namespace sandbox::local {

// As bake() in backend.hpp, with a backend's setting. Cancelled, with `setting.ending` set before,
// it soon throws FreezeError and leaves nothing behind. An empty path: another server is making the
// same image right now.
awaitable<std::filesystem::path> bake_in(Setting& setting, Template python);

}  // namespace sandbox::local
