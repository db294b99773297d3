#pragma once

#include <filesystem>

namespace sandbox {

// Deletes a directory that code in a sandbox has filled, and says whether it is gone. Nothing may
// run in it any more. However deep it is nested and whatever permissions were taken off, it needs a
// handful of descriptors: std::filesystem::remove_all holds one a level, and gives up (with the
// whole program out of descriptors meanwhile) after a thousand. Links are never followed. Blocks.
bool remove_tree(const std::filesystem::path& directory);

}  // namespace sandbox
