#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sandbox/sandbox.hpp"

namespace sandbox::local {

constexpr const char* kHome = "/tmp/home";

// All variables of the sandboxed program: PATH, HOME, the locale, TZ if the server has it, the
// server's OPENBLAS_* (without them an older OpenBLAS computes wrong results on some processors),
// OMP_NUM_THREADS (the server's, else one for each processor it may use), then those of the spec.
std::vector<std::pair<std::string, std::string>> program_environment(const SandboxSpec& spec);

}  // namespace sandbox::local
