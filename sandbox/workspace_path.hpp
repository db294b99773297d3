#pragma once

#include <string>

namespace sandbox {

// Where /workspace is, inside every sandbox.
inline constexpr const char* kWorkspacePath = "/workspace";

// A path as the model or a client gives it, as one relative to the workspace: without a leading
// "/workspace/", "." and doubled slashes; "." for the workspace itself. Other bytes are kept: a
// name need not be UTF-8. Refuses "..", other absolute paths, NUL, and names over 255 bytes.
std::string workspace_path(const std::string& path);

// The same, of where a file is to be put: refuses what ends in "/", too.
std::string file_path(const std::string& path);

// "\xff" for each byte that is not part of valid UTF-8.
std::string printable(const std::string& name);

// Throws FileError: what stands in the way of a file operation, for the reader.
[[noreturn]] void fail(const std::string& path, int error);

}  // namespace sandbox
