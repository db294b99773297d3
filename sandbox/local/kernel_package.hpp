#pragma once

#include <filesystem>
#include <string>

namespace sandbox::local {

// Writes the Python package that runs inside sandboxes (it is embedded in this program) below
// `root` and returns the directory that holds `pykeep_kernel/`. Each version has its own directory;
// what is there already is compared and, where it differs, replaced. Blocks; throws StartError.
std::filesystem::path install_kernel_package(const std::filesystem::path& root);

}  // namespace sandbox::local
