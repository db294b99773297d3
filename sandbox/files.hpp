#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "async/async.hpp"

namespace sandbox {

using async::awaitable;

// A file operation that could not be done: for the reader, with the path named.
struct FileError : std::runtime_error {
  explicit FileError(const std::string& what, int error_number = 0)
      : std::runtime_error(what), error(error_number) {}
  int error;  // the system's errno; 0 when it was not the system that refused
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

// A file on its way into the workspace, in parts. Until finish() what was at its path stays;
// without it nothing is left of what was written. May outlive the Files that gave it.
class FileWriter {
 public:
  virtual ~FileWriter() = default;
  virtual awaitable<void> write(std::string_view bytes) = 0;  // FileError: e.g. the disk is full
  virtual awaitable<FileInfo> finish() = 0;
};

// One file as it was when it was opened, whatever is put at its path meanwhile. (Code in the
// sandbox can still write into it, or cut it short.) May outlive the Files that gave it.
class FileReader {
 public:
  virtual ~FileReader() = default;
  virtual const FileInfo& info() const = 0;
  // Differs whenever the content may: for comparing, not for reading.
  virtual const std::string& version() const = 0;
  // As Files::read.
  virtual awaitable<std::string> read(std::uint64_t offset, std::size_t size) = 0;
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
  // For what must not be held in memory.
  virtual awaitable<std::unique_ptr<FileWriter>> create(std::string path) = 0;
  virtual awaitable<std::unique_ptr<FileReader>> open(std::string path) = 0;
  // What all files take up, in bytes; counts no further than `enough`.
  virtual awaitable<std::uint64_t> used(std::uint64_t enough) = 0;
  // Where the file is on this machine, for people beside it; empty if it is not on this machine.
  virtual std::string host_path(const std::string& path) const = 0;
};

}  // namespace sandbox
