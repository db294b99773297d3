#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "async/async.hpp"

namespace sandbox {

using async::awaitable;

// A file operation that could not be done: for the reader, with the path named.
struct FileError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct FileInfo {
  std::string path;  // relative to the workspace, '/'-separated, valid UTF-8 or escaped
  bool is_directory = false;
  bool is_link = false;  // listed, never followed
  std::uint64_t size = 0;
  std::int64_t modified = 0;  // seconds since the epoch
};

struct Listing {
  std::vector<FileInfo> entries;  // by path
  bool complete = true;           // false: the cap was reached
};

// The workspace seen from outside the sandbox. Paths are relative to it (a leading "/workspace/" is
// accepted); absolute others, "..", links and NUL bytes are refused with FileError, because the
// sandbox could swap what is there at any time. Nothing here blocks the event loop.
class Files {
 public:
  virtual ~Files() = default;

  virtual awaitable<FileInfo> stat(std::string path) = 0;
  // What is in a directory, and below it down to `depth` levels (1 = itself); at most `cap`
  // entries.
  virtual awaitable<Listing> list(std::string path, int depth, std::size_t cap) = 0;
  // At most `size` bytes from `offset`; shorter at the end of the file.
  virtual awaitable<std::string> read(std::string path, std::uint64_t offset, std::size_t size) = 0;
  // Creates or replaces a file, making its directories; the old one stays if writing fails.
  virtual awaitable<FileInfo> write(std::string path, std::string bytes) = 0;
  // The same from an open host file, without holding it in memory; at most `cap` bytes, else
  // FileError.
  virtual awaitable<FileInfo> copy_in(std::string path, int host_fd, std::uint64_t cap) = 0;
  // Where the file is on this machine, for people beside it; empty if it is not on this machine.
  virtual std::string host_path(const std::string& path) const = 0;
};

}  // namespace sandbox
