#pragma once

#include <filesystem>
#include <string>

namespace sandbox::local {

// Writes what runs inside sandboxes and is embedded in this program below `root`: the Python
// package and the loader (sandbox/image). Returns the directory that holds `pykeep_kernel/` and
// `loader`. Each version has its own directory, whose name tells them apart; what is there already
// is compared and, where it differs, replaced. Blocks; throws StartError.
std::filesystem::path install_kernel_package(const std::filesystem::path& root);

}  // namespace sandbox::local
