#pragma once

#include <atomic>
#include <chrono>

#include "sandbox/image/mappings.hpp"
#include "sandbox/image/writer.hpp"

namespace sandbox::image {

struct Pages {
  std::uint64_t first, end;  // by number, from the start of the range they are in
};

// Which pages of a process are its own: neither a file's nor untouched.
class PageMap {
 public:
  explicit PageMap(pid_t pid);
  // In [start, end), ascending; gaps of up to `gap` pages are closed. `count`: without those gaps.
  std::vector<Pages> own(std::uint64_t start, std::uint64_t end, std::uint64_t gap,
                         std::uint64_t& count);

 private:
  Handle file_;
  std::vector<std::uint64_t> entries_;
};

struct MemoryInput {
  const InnerRoot& root;
  const std::vector<Advice>& advice;
  // The base image as the host knows it, if any.
  std::uint64_t base_inode = 0, base_device = 0;
  std::string base_path;
  std::string copied;  // the files below it are known by size and time
  std::chrono::steady_clock::time_point deadline;
  const std::atomic<bool>* given_up = nullptr;
};

// Decides where each mapping comes from in a thaw, and writes what has to be in the image.
class Memory {
 public:
  Memory(MemoryInput input, Metadata& metadata, Writer& writer, std::vector<std::string>& lost);

  // Shared memory, while the process stands still: a copy of the process would share it. What
  // descriptors are open must be in the metadata.
  void save_shared(pid_t pid, const std::vector<MapsLine>& lines);
  static std::uint64_t shared_bytes(const std::vector<MapsLine>& lines);
  // Everything else, from the process or a copy of it.
  void save_private(pid_t pid, const std::vector<MapsLine>& lines);
  // Puts both together. To be called last.
  void finish();

 private:
  struct Planned {
    Mapping mapping{};
    std::vector<Run> runs;
  };
  Planned begin(const MapsLine& line) const;
  void save_shared(const MapsLine& line, const std::vector<MapsLine>& lines);
  void save_private(const MapsLine& line);
  bool find_source(const MapsLine& line, Mapping& mapping);
  std::uint32_t file_index(const std::string& path, const InnerRoot::Found& found, bool may_change);
  const std::optional<InnerRoot::Found>& find(const std::string& path);
  void write_whole(const MapsLine& line, Planned& planned, const std::vector<Pages>* pages);
  void write_runs(const MapsLine& line, Planned& planned, const std::vector<Pages>& pages);
  void copy(std::uint64_t address, std::uint64_t size, std::uint64_t to, bool may_fail);
  std::uint64_t read(std::uint64_t address, std::uint64_t size);
  void check_time() const;

  MemoryInput input_;
  Metadata& metadata_;
  Writer& writer_;
  std::vector<std::string>& lost_;
  std::vector<Planned> planned_;
  std::string found_path_;
  std::optional<InnerRoot::Found> found_;
  pid_t pid_ = 0;
  Handle memory_;
  std::optional<PageMap> pagemap_;
  std::vector<char> buffer_;
};

// The pages within `mappings` that are the process's own, not a file's; gaps of up to `gap` pages
// are closed.
std::vector<HotRun> own_runs(pid_t pid, const std::vector<Mapping>& mappings, std::uint64_t gap);

}  // namespace sandbox::image
