#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace sandbox::local {

// Writes the whole content through `write`, which throws FileError when it cannot.
using Content = std::function<void(const std::function<void(std::string_view)>& write)>;

Content from_memory(std::string_view bytes);  // refers to them
// A regular file of the host from its beginning; throws FileError past `cap` bytes.
Content from_file(int fd, std::uint64_t cap);

// Creates or replaces the file at `path` below `root`, and the directories that lead to it. Written
// aside and renamed: until all of it is there, what was at `path` stays, and it stays if writing
// fails. New files and directories belong to `owner`. Blocks; throws FileError.
void replace_file(int root, const std::string& path, std::optional<uid_t> owner,
                  const Content& content);

// Whether a name is that of a file that is being written.
bool is_unfinished(std::string_view name);

}  // namespace sandbox::local
