#include "sandbox/image/image_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>

#include "sandbox/sandbox.hpp"

namespace sandbox::image {

namespace {

constexpr std::uint64_t kMaxMetadata = 1ull << 30;

[[noreturn]] void damaged(const std::string& what) {
  throw ThawError("the image is damaged (" + what + "): it cannot be used any more");
}

bool read_exactly(int file, void* to, std::uint64_t size, std::uint64_t offset) {
  for (std::uint64_t done = 0; done < size;) {
    ssize_t part =
        pread(file, static_cast<char*>(to) + done, size - done, static_cast<off_t>(offset + done));
    if (part == -1 && errno == EINTR) continue;
    if (part <= 0) return false;
    done += static_cast<std::uint64_t>(part);
  }
  return true;
}

Header read_header(int file) {
  Header header{};
  if (!read_exactly(file, &header, sizeof header, 0)) damaged("it is cut short");
  if (header.magic != kMagic) damaged("it is not an image");
  if (header.version != kFormatVersion)
    throw ThawError("the image was made by another version of pykeep");
  std::uint32_t crc = std::exchange(header.header_crc, 0);
  if (crc32c(&header, sizeof header) != crc) damaged("its header");
  struct stat status {};
  if (fstat(file, &status) == -1 || !S_ISREG(status.st_mode) ||
      static_cast<std::uint64_t>(status.st_size) != header.file_size)
    damaged("it is cut short");
  if (header.metadata_offset < kPageSize || header.metadata_offset % kPageSize != 0 ||
      header.metadata_size > kMaxMetadata || header.metadata_offset > header.file_size ||
      header.metadata_size != header.file_size - header.metadata_offset)
    damaged("its header");
  header.kernel[sizeof header.kernel - 1] = 0;
  header.header_crc = crc;
  return header;
}

// Numbers in the metadata. Code in a sandbox had a say in all of them.
class Checker {
 public:
  Checker(const Header& header, const Metadata& metadata) : header_(header), metadata_(metadata) {}

  const char* find_fault() {
    for (const Mapping& mapping : metadata_.mappings)
      if (!is_good(mapping)) return "a mapping";
    for (const ThreadState& thread : metadata_.threads)
      if (!within(thread.xsave_offset, thread.xsave_size, metadata_.registers.size()))
        return "a thread";
    for (const File& file : metadata_.files)
      if (!is_string(file.path)) return "a file";
    for (const Descriptor& descriptor : metadata_.descriptors)
      if (!is_good(descriptor)) return "a descriptor";
    for (std::uint32_t text : metadata_.lost)
      if (!is_string(text)) return "a text";
    std::uint64_t end = kPageSize;
    for (const Extent& extent : metadata_.extents) {
      if (extent.offset < end || !in_data(extent.offset, extent.length)) return "an extent";
      end = extent.offset + extent.length;
    }
    return is_string(metadata_.process.directory) ? nullptr : "its directory";
  }

 private:
  static bool within(std::uint64_t offset, std::uint64_t size, std::uint64_t whole) {
    return offset <= whole && size <= whole - offset;
  }
  bool in_data(std::uint64_t offset, std::uint64_t size) const {
    return offset >= kPageSize && within(offset, size, header_.metadata_offset);
  }
  bool is_string(std::uint32_t offset) const { return offset < metadata_.strings.size(); }

  bool is_good(const Mapping& mapping) {
    bool reserved = mapping.start < kReservedEnd && mapping.end > kReserved;
    if (mapping.start < last_end_ || mapping.start >= mapping.end || mapping.end > kUserEnd ||
        (mapping.start | mapping.end | mapping.offset) % kPageSize != 0 || reserved)
      return false;
    last_end_ = mapping.end;
    std::uint64_t size = mapping.end - mapping.start;
    if (mapping.source > Source::descriptor ||
        (mapping.source == Source::image && !in_data(mapping.offset, size)) ||
        (mapping.source == Source::file && mapping.file >= metadata_.files.size()) ||
        !within(mapping.first_run, mapping.runs, metadata_.runs.size()))
      return false;
    for (std::uint32_t index = 0; index < mapping.runs; ++index) {
      const Run& run = metadata_.runs[mapping.first_run + index];
      if (run.address < mapping.start || !within(run.address - mapping.start, run.length, size) ||
          (run.address | run.length | run.offset) % kPageSize != 0 ||
          !in_data(run.offset, run.length))
        return false;
    }
    return true;
  }

  bool is_good(const Descriptor& descriptor) const {
    return descriptor.number >= 0 && descriptor.kind <= DescriptorKind::lost &&
           is_string(descriptor.path) &&
           (descriptor.contents_size == 0 ||
            in_data(descriptor.contents, descriptor.contents_size));
  }

  const Header& header_;
  const Metadata& metadata_;
  std::uint64_t last_end_ = 0;
};

}  // namespace

ImageFile open_image(const std::filesystem::path& path) {
  ImageFile image;
  // Links are followed: a base is given as /proc/self/fd/N.
  image.file = Handle(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!image.file)
    throw ThawError("cannot open the image " + path.string() + ": " +
                    std::generic_category().message(errno));
  image.header = read_header(image.file.get());
  std::string bytes(image.header.metadata_size, '\0');
  if (!read_exactly(image.file.get(), bytes.data(), bytes.size(), image.header.metadata_offset))
    damaged("it is cut short");
  if (crc32c(bytes.data(), bytes.size()) != image.header.metadata_crc) damaged("its metadata");
  if (!deserialize(bytes, image.header, image.metadata)) damaged("its metadata");
  if (const char* fault = Checker(image.header, image.metadata).find_fault()) damaged(fault);
  return image;
}

void rewrite_metadata(const std::filesystem::path& path, const Metadata& metadata, Header header) {
  std::string bytes = serialize(metadata, header);
  header.metadata_size = bytes.size();
  header.metadata_crc = crc32c(bytes.data(), bytes.size());
  header.file_size = header.metadata_offset + bytes.size();
  header.header_crc = 0;
  header.header_crc = crc32c(&header, sizeof header);
  Handle file(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW));
  auto put = [&](const void* from, std::size_t size, std::uint64_t offset) {
    return pwrite(file.get(), from, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
  };
  if (!file || !put(bytes.data(), bytes.size(), header.metadata_offset) ||
      ftruncate(file.get(), static_cast<off_t>(header.file_size)) == -1 ||
      !put(&header, sizeof header, 0) || fsync(file.get()) == -1)
    refuse_errno("cannot write the image " + path.string());
}

}  // namespace sandbox::image
