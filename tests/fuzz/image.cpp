// An image whose header and metadata are any bytes, with the checksums right: its writer may be
// hostile. An input is a byte of faults to leave in, the header, and the metadata.

#include "sandbox/image/image.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstring>

#include "sandbox/image/format.hpp"
#include "sandbox/image/tracee.hpp"
#include "sandbox/sandbox.hpp"
#include "tests/fuzz/check.hpp"

// The loader is no part of this target.
std::uint32_t sandbox::image::loader_abi() { return 0; }

using namespace sandbox::image;

namespace {

enum Fault : unsigned { kSizes = 1, kChecksums = 2, kVersion = 4, kCutShort = 8 };

class TemporaryFile {
 public:
  TemporaryFile() : fd_(mkstemp(path_)) { check(fd_ >= 0, "a temporary file can be made"); }
  ~TemporaryFile() {
    close(fd_);
    unlink(path_);
  }
  const char* path() const { return path_; }
  void write(std::string_view bytes) {
    check(ftruncate(fd_, 0) == 0 &&
              pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()),
          "a temporary file can be written");
  }

 private:
  char path_[40] = "/dev/shm/pykeep-fuzz-XXXXXX";
  int fd_;
};

std::string image(unsigned faults, std::string_view input) {
  Header header{};
  std::memcpy(&header, input.data(), std::min(input.size(), sizeof header));
  std::string_view metadata = input.substr(std::min(input.size(), sizeof header));
  std::uint64_t data = kPageSize * (1 + (header.metadata_offset / kPageSize) % 4);
  if (!(faults & kVersion)) {
    header.magic = kMagic;
    header.version = kFormatVersion;
  }
  if (!(faults & kSizes)) {
    header.metadata_offset = data;
    header.metadata_size = metadata.size();
    header.file_size = data + metadata.size();
  }
  if (!(faults & kChecksums)) {
    header.metadata_crc = crc32c(metadata.data(), metadata.size());
    header.header_crc = 0;
    header.header_crc = crc32c(&header, sizeof header);
  }
  std::string bytes(data, '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  bytes += metadata;
  if (faults & kCutShort) bytes.resize(bytes.size() / 2);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static TemporaryFile file;
  if (size == 0) return 0;
  file.write(image(data[0], as_text(data + 1, size - 1)));
  try {
    ImageInfo info = inspect(file.path());
    for (const std::string& text : info.lost) well_formed(boost::json::serialize(text));
    well_formed(boost::json::serialize(info.kernel));
    why_not_here(info, {"/nowhere"});
    verify(file.path());
  } catch (const sandbox::ThawError& refused) {
    check(*refused.what() != 0, "a refusal has a reason");
  }
  return 0;
}
