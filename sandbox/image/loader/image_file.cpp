#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "sandbox/image/loader/thaw.hpp"

namespace sandbox::image::loader {

namespace {

constexpr std::uint64_t kMaxMetadata = 1ull << 30;
constexpr int kTemporaries = 16;

int number(const char* text) {
  int value = 0;
  if (!*text) fail("not a descriptor", text);
  for (const char* at = text; *at; ++at) {
    if (*at < '0' || *at > '9' || value > 1'000'000) fail("not a descriptor", text);
    value = value * 10 + (*at - '0');
  }
  return value;
}

Header header;  // too large for a small stack

void read_header(int fd, const char* what) {
  read_fully(fd, &header, sizeof header, 0, what);
  if (header.magic != kMagic) fail(what, "not an image");
  if (header.version != kFormatVersion) fail(what, "an image of another version");
  std::uint32_t crc = header.header_crc;
  header.header_crc = 0;
  if (crc32c(&header, sizeof header) != crc) fail(what, "damaged (header)");
  header.header_crc = crc;
}

void check_sections(const char* what) {
  for (std::uint32_t index = 0; index < kSectionCount; ++index) {
    const Section& section = header.sections[index];
    if (section.offset > header.metadata_size ||
        section.count > (header.metadata_size - section.offset) / kElementSize[index])
      fail(what, "damaged (sections)");
  }
  if (header.sections[kProcess].count != 1 || header.sections[kThreads].count == 0)
    fail(what, "damaged (no process)");
}

void check_machine(const char* what) {
  if (header.page_size != kPageSize) fail(what, "made with another page size");
  if (!can_run(header.cpu, read_cpu())) fail(what, "made on a processor that has other features");
  if (header.loader_abi != crc32c(vdso_proxy, kPageSize))
    fail(what, "made by another version of pykeep");
}

void check_base(const char* base) {
  static const std::uint8_t none[16] = {};
  static std::uint8_t wanted[16];
  memcpy(wanted, header.base_id, 16);
  bool needed = memcmp(wanted, none, 16) != 0;
  if (!needed) return;
  if (!base) fail("the image needs its template's image");
  read_header(number(base), "the template's image");
  if (memcmp(header.id, wanted, 16) != 0)
    fail("the template's image", "not the one that the image was made from");
}

// `fd`, at a number from `floor` on.
int lift(int fd, int floor, const char* what) {
  return static_cast<int>(check(call(__NR_fcntl, fd, F_DUPFD_CLOEXEC, floor), what));
}

}  // namespace

Image open_image(const char* image, const char* base) {
  constexpr const char* kWhat = "the image";
  Image result;
  int fd = number(image);
  read_header(fd, kWhat);
  check_base(base);
  read_header(fd, kWhat);  // the base's took its place
  check_machine(kWhat);
  if (header.metadata_size > kMaxMetadata) fail(kWhat, "damaged (size)");
  check_sections(kWhat);

  map_at(kMetadata, kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, kWhat);
  memcpy(reinterpret_cast<void*>(kMetadata), &header, sizeof header);
  map_at(kMetadata + kPageSize, header.metadata_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd,
         header.metadata_offset, kWhat);
  if (crc32c(Image::metadata(), header.metadata_size) != header.metadata_crc)
    fail(kWhat, "damaged (metadata)");

  std::uint64_t descriptors = result.count(kDescriptors);
  if (descriptors > 0) {
    int last = result.begin<Descriptor>(kDescriptors)[descriptors - 1].number;
    if (last >= result.floor) result.floor = last + 1;
  }
  rlimit limit{};
  call(__NR_prlimit64, 0, RLIMIT_NOFILE, 0, &limit);
  if (static_cast<std::uint64_t>(result.floor + kTemporaries) > limit.rlim_cur)
    fail("the image has descriptors with numbers above this sandbox's limit");
  // Both may lie anywhere, also where the process wants its own; nothing else of ours stays open.
  int first = fd, second = base ? number(base) : -1;
  result.fd = lift(first, result.floor, kWhat);
  if (second >= 0) result.base_fd = lift(second, result.floor, "the template's image");
  result.floor = (result.fd > result.base_fd ? result.fd : result.base_fd) + 1;
  result.report = static_cast<int>(call(__NR_fcntl, 2, F_DUPFD_CLOEXEC, result.floor));
  if (result.report >= 0) {
    report_to(result.report);
    result.floor = result.report + 1;
  }
  for (int number = 4; number < result.floor; ++number)
    if (number != result.fd && number != result.base_fd && number != result.report)
      call(__NR_close, number);
  call(__NR_close_range, result.floor, ~0u, 0);
  return result;
}

}  // namespace sandbox::image::loader
