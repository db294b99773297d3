#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "sandbox/image/metadata.hpp"
#include "sandbox/image/proc.hpp"

namespace sandbox::image {

// A new image file: made aside, with its data first. Gone again unless commit() was called.
class Writer {
 public:
  // Throws FreezeError if the image exists or cannot be made.
  Writer(std::filesystem::path image, std::uint64_t max_bytes);
  ~Writer();

  // Room for `size` bytes, from a page boundary on; a hole until written to.
  std::uint64_t reserve(std::uint64_t size);
  // Within what was reserved, by ascending offset. Pages of zeros are left out.
  void write(std::uint64_t offset, const char* bytes, std::uint64_t size);
  // Reserves and writes; returns the offset.
  std::uint64_t append(std::string_view bytes);

  // Completes the image: at its name, and if `sync`, on the disk before. `check` is called
  // meanwhile and may throw. Returns the bytes it takes on disk.
  std::uint64_t commit(Metadata& metadata, Header header, bool sync,
                       const std::function<void()>& check);

 private:
  void sync(const std::function<void()>& check);
  void put(std::uint64_t offset, const char* bytes, std::uint64_t size);

  std::filesystem::path image_, aside_;
  Handle file_;
  std::uint64_t end_ = kPageSize;
  std::uint64_t written_ = 0, max_bytes_;
  std::vector<Extent> extents_;
  bool committed_ = false;
};

}  // namespace sandbox::image
