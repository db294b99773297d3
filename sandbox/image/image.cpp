#include "sandbox/image/image.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "sandbox/bounded_text.hpp"
#include "sandbox/image/image_file.hpp"
#include "sandbox/image/tracee.hpp"
#include "sandbox/sandbox.hpp"

namespace sandbox::image {

namespace {

ImageId to_id(const std::uint8_t (&bytes)[16]) {
  ImageId id;
  std::ranges::copy(bytes, id.begin());
  return id;
}

ImageInfo describe(const ImageFile& image) {
  const Header& header = image.header;
  const Metadata& metadata = image.metadata;
  ImageInfo info;
  info.id = to_id(header.id);
  if (ImageId base = to_id(header.base_id); base != ImageId{}) info.base = base;
  struct stat status {};
  if (fstat(image.file.get(), &status) == 0)
    info.bytes = static_cast<std::uint64_t>(status.st_blocks) * 512;
  info.real_time = std::chrono::nanoseconds(header.real_ns);
  info.monotonic = std::chrono::nanoseconds(header.monotonic_ns);
  info.boottime = std::chrono::nanoseconds(header.boottime_ns);
  info.kernel = readable_end(header.kernel, sizeof header.kernel);
  info.threads = metadata.threads.size();
  for (const Extent& extent : metadata.extents) info.memory += extent.length;
  for (std::uint32_t text : metadata.lost)
    info.lost.push_back(readable_end(metadata.string(text), 300));
  for (const File& file : metadata.files)
    if (!file.may_change)
      info.files.push_back({metadata.string(file.path), file.size, file.modified_ns, file.inode});
  info.cpu = header.cpu;
  info.loader_abi = header.loader_abi;
  return info;
}

constexpr std::size_t kChunk = 1 << 20;

class Verifier {
 public:
  explicit Verifier(const ImageFile& image) : image_(image) { buffer_.resize(kChunk); }

  void run() {
    std::uint64_t end = sizeof(Header);
    for (const Extent& extent : image_.metadata.extents) {
      check_zeros(end, extent.offset);
      end = extent.offset + extent.length;
      if (checksum(extent) != extent.crc) fail();
    }
    check_zeros(end, image_.header.metadata_offset);
  }

 private:
  [[noreturn]] static void fail() {
    throw ThawError("the image is damaged (its data): it cannot be used any more");
  }

  void read(std::uint64_t offset, std::uint64_t size) {
    ssize_t got = pread(image_.file.get(), buffer_.data(), size, static_cast<off_t>(offset));
    if (got != static_cast<ssize_t>(size)) fail();
  }

  std::uint32_t checksum(const Extent& extent) {
    std::uint32_t crc = 0;
    for (std::uint64_t done = 0; done < extent.length;) {
      std::uint64_t part = std::min<std::uint64_t>(kChunk, extent.length - done);
      read(extent.offset + done, part);
      crc = crc32c(buffer_.data(), part, crc);
      done += part;
    }
    return crc;
  }

  // What no checksum covers are holes: zeros, and mostly not even on disk.
  void check_zeros(std::uint64_t start, std::uint64_t end) {
    while (start < end) {
      off_t data = lseek(image_.file.get(), static_cast<off_t>(start), SEEK_DATA);
      if (data == -1 || static_cast<std::uint64_t>(data) >= end) return;
      start = static_cast<std::uint64_t>(data);
      std::uint64_t part = std::min<std::uint64_t>(kPageSize - start % kPageSize, end - start);
      read(start, part);
      if (std::any_of(buffer_.begin(), buffer_.begin() + static_cast<std::ptrdiff_t>(part),
                      [](char byte) { return byte != 0; }))
        fail();
      start += part;
    }
  }

  const ImageFile& image_;
  std::vector<char> buffer_;
};

bool is_below(const std::string& path, const std::vector<std::filesystem::path>& directories) {
  return std::ranges::any_of(directories, [&](const std::filesystem::path& directory) {
    const std::string& prefix = directory.native();
    return path.starts_with(prefix) &&
           (prefix.ends_with('/') || path.size() == prefix.size() || path[prefix.size()] == '/');
  });
}

}  // namespace

ImageInfo inspect(const std::filesystem::path& image) { return describe(open_image(image)); }

ImageInfo verify(const std::filesystem::path& image) {
  ImageFile file = open_image(image);
  Verifier(file).run();
  return describe(file);
}

std::optional<std::string> why_not_here(const ImageInfo& info,
                                        const std::vector<std::filesystem::path>& visible) {
  if (info.loader_abi != loader_abi()) return "it was made by another version of pykeep";
  if (sysconf(_SC_PAGESIZE) != static_cast<long>(kPageSize))
    return "this machine has another page size";
  if (!can_run(info.cpu, read_cpu()))
    return "it was made on a processor with other features than this one";
  for (const MappedFile& file : info.files) {
    if (!is_below(file.path, visible)) continue;
    struct stat status {};
    if (stat(file.path.c_str(), &status) == -1) return file.path + " is gone";
    std::int64_t modified = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
    if (static_cast<std::uint64_t>(status.st_size) != file.size || modified != file.modified_ns ||
        (file.inode != 0 && status.st_ino != file.inode))
      return file.path + " has changed since";
  }
  return std::nullopt;
}

}  // namespace sandbox::image
