#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "sandbox/local/process.hpp"

namespace sandbox::local {

// A file that is being written below `root`, to be put at `path` once it is whole. Until finish()
// what is there stays, and without it nothing is left behind. Makes the directories that lead
// there; they and the file belong to `owner`. Everything blocks, and throws FileError.
class Replacement {
 public:
  Replacement(int root, std::string path, std::optional<uid_t> owner);
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;
  ~Replacement();

  void write(std::string_view bytes);
  void finish();

 private:
  void open_unfinished();
  void give_name();

  std::string path_, name_;
  Fd directory_, file_;
  std::string unfinished_;
  bool named_ = false;  // `unfinished_` is in the directory
};

// Writes the whole content through `write`, which throws FileError when it cannot.
using Content = std::function<void(const std::function<void(std::string_view)>& write)>;

Content from_memory(std::string_view bytes);  // refers to them
// A regular file of the host from its beginning; throws FileError past `cap` bytes.
Content from_file(int fd, std::uint64_t cap);

// All of it in one go.
void replace_file(int root, const std::string& path, std::optional<uid_t> owner,
                  const Content& content);

// Whether a name is that of a file that is being written.
bool is_unfinished(std::string_view name);

}  // namespace sandbox::local
