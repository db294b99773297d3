#pragma once

#include <filesystem>
#include <string>

#include "sandbox/sandbox.hpp"

namespace sandbox::local {

// Whether kernels can be frozen and thawed here is tried with a real one (app/doctor.cpp); this
// says what to do where it failed: the switch below `proc_sys` (/proc/sys) that forbids it, with
// the exact command; general advice where none does.
std::string image_remedy(const std::filesystem::path& proc_sys);

// Large pages, as `file` (/sys/kernel/mm/transparent_hugepage/enabled) has them: without, thawing a
// session with much data takes several times as long.
Layer huge_pages(const std::filesystem::path& file);

}  // namespace sandbox::local
