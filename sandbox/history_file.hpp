#pragma once

// What a session has executed, on disk: a text of one line an execution, oldest first. What a line
// says is the writer's business. All block; those that can fail throw StoreError.
//
// A line is written when its execution has ended and not synced: it survives the process that wrote
// it at once, and the machine a little later. A reader needs no lock.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sandbox {

// Adds a line (without its end) and returns the size of the file. All of it is there or nothing.
std::uint64_t append_history(const std::filesystem::path& file, std::string line);

// The lines; none where there is no file. A last line without an end is left out.
std::vector<std::string> read_history(const std::filesystem::path& file);

// Replaces all of it, and returns the size.
std::uint64_t write_history(const std::filesystem::path& file,
                            const std::vector<std::string>& lines);

// Makes `to` what `from` is (no file if there is none) and returns the size.
std::uint64_t copy_history(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace sandbox
