#include <fcntl.h>
#include <linux/mman.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "sandbox/image/loader/thaw.hpp"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

namespace sandbox::image::loader {

namespace {

// A session's own data is read at once, into huge pages, up to this: writing to it then costs no
// page fault each. What is beyond, and a template's pages, are mapped and read when touched.
constexpr std::uint64_t kEagerBytes = 256 << 20;
constexpr std::uint64_t kHullGap = 64 << 20;

class Restorer {
 public:
  Restorer(const Image& image, Hulls& hulls)
      : image_(image), hulls_(hulls), eager_left_(image.base_fd >= 0 ? kEagerBytes : 0) {}

  void restore(const Mapping& mapping) {
    const Run* first = image_.begin<Run>(kRuns) + mapping.first_run;
    bool copies = false;
    for (const Run* run = first; run < first + mapping.runs; ++run) copies |= !run->mapped;
    auto wanted = static_cast<int>(mapping.protection);
    int protection = copies ? wanted | PROT_READ | PROT_WRITE : wanted;
    map(mapping, protection);
    for (const Run* run = first; run < first + mapping.runs; ++run) restore(*run, protection);
    if (protection != wanted)
      check(call(__NR_mprotect, mapping.start, size(mapping), wanted), "cannot protect memory");
    advise(mapping);
    bool from_image = mapping.source == Source::image || mapping.source == Source::base;
    for (const Run* run = first; run < first + mapping.runs; ++run) from_image |= run->mapped != 0;
    if (from_image) hulls_.add(mapping.start, mapping.end);
  }

  void finish() {
    if (file_ >= 0) call(__NR_close, file_);
  }

 private:
  static std::uint64_t size(const Mapping& mapping) { return mapping.end - mapping.start; }

  void map(const Mapping& mapping, int protection) {
    constexpr const char* kWhat = "cannot map memory";
    switch (mapping.source) {
      case Source::image:
        map_at(mapping.start, size(mapping), protection, MAP_PRIVATE, image_.fd, mapping.offset,
               kWhat);
        if (protection & PROT_WRITE) read_ahead(mapping, protection);
        return;
      case Source::base:
        map_at(mapping.start, size(mapping), protection, MAP_PRIVATE, image_.base_fd,
               mapping.offset, kWhat);
        return;
      case Source::file:
        open_file(mapping);
        map_at(mapping.start, size(mapping), protection,
               mapping.flags & kShared ? MAP_SHARED : MAP_PRIVATE, file_, mapping.offset, kWhat);
        return;
      case Source::descriptor:
        map_at(mapping.start, size(mapping), protection, MAP_SHARED, static_cast<int>(mapping.file),
               mapping.offset, kWhat);
        return;
      case Source::anonymous:
      case Source::shared_anonymous:
        map_at(mapping.start, size(mapping), protection,
               MAP_ANONYMOUS | MAP_NORESERVE |
                   (mapping.source == Source::anonymous ? MAP_PRIVATE : MAP_SHARED),
               -1, 0, kWhat);
        return;
    }
    fail("damaged (a mapping)");
  }

  // The inner part, in huge pages; the edges stay mapped from the image.
  void read_ahead(const Mapping& mapping, int protection) {
    std::uint64_t start = (mapping.start + kHugePage - 1) & ~(kHugePage - 1);
    std::uint64_t end = mapping.end & ~(kHugePage - 1);
    if (start >= end) return;
    if (end - start > eager_left_) end = (start + eager_left_) & ~(kHugePage - 1);
    if (start >= end) return;
    eager_left_ -= end - start;
    map_at(start, end - start, protection | PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0,
           "cannot map memory");
    call(__NR_madvise, start, end - start, MADV_HUGEPAGE);
    read_fully(image_.fd, reinterpret_cast<void*>(start), end - start,
               mapping.offset + (start - mapping.start), "the image");
    if (!(protection & PROT_READ)) call(__NR_mprotect, start, end - start, protection);
  }

  // Mappings of one file follow each other: the last one stays open.
  void open_file(const Mapping& mapping) {
    bool writable = (mapping.flags & kShared) && (mapping.protection & PROT_WRITE);
    if (file_ >= 0 && mapping.file == index_ && (writable_ || !writable)) return;
    if (mapping.file >= image_.count(kFiles)) fail("damaged (a file)");
    const File& file = image_.begin<File>(kFiles)[mapping.file];
    const char* path = image_.string(file.path);
    if (file_ >= 0) call(__NR_close, file_);
    file_ = static_cast<int>(check(
        call(__NR_open, path, (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC), "cannot open", path));
    index_ = mapping.file;
    writable_ = writable;
    struct stat status {};
    check(call(__NR_fstat, file_, &status), "cannot look at", path);
    if (file.may_change) {
      // Touching what is behind its end would kill the process.
      if (static_cast<std::uint64_t>(status.st_size) < file.size)
        fail("a file that the image maps is shorter now", path);
      return;
    }
    std::int64_t modified = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
    if (static_cast<std::uint64_t>(status.st_size) != file.size || modified != file.modified_ns ||
        (file.inode != 0 && status.st_ino != file.inode))
      fail("a file that the image needs was changed since", path);
  }

  void restore(const Run& run, int protection) {
    if (run.mapped) {
      map_at(run.address, run.length, protection, MAP_PRIVATE, image_.fd, run.offset,
             "cannot map memory");
      return;
    }
    // Otherwise each page would fault while it is read into. Linux 5.14; without it, just slower.
    if (run.length > kPageSize) call(__NR_madvise, run.address, run.length, MADV_POPULATE_WRITE);
    read_fully(image_.fd, reinterpret_cast<void*>(run.address), run.length, run.offset,
               "the image");
  }

  void advise(const Mapping& mapping) {
    static constexpr struct {
      std::uint32_t flag;
      int advice;
    } kAdvice[] = {{kHuge, MADV_HUGEPAGE},
                   {kNoHuge, MADV_NOHUGEPAGE},
                   {kDontFork, MADV_DONTFORK},
                   {kWipeOnFork, MADV_WIPEONFORK},
                   {kDontDump, MADV_DONTDUMP}};
    for (const auto& each : kAdvice)
      if (mapping.flags & each.flag) call(__NR_madvise, mapping.start, size(mapping), each.advice);
    if (mapping.flags & kLocked) call(__NR_mlock, mapping.start, size(mapping));
  }

  const Image& image_;
  Hulls& hulls_;
  std::uint64_t eager_left_;
  int file_ = -1;
  std::uint32_t index_ = 0;
  bool writable_ = false;
};

// Pages that sessions of this template write to soon: made their own now, many at a time.
void prepare_hot_pages(const Image& image) {
  const HotRun* runs = image.begin<HotRun>(kHotRuns);
  for (std::uint64_t index = 0; index < image.count(kHotRuns); ++index)
    call(__NR_madvise, runs[index].address, runs[index].length, MADV_POPULATE_WRITE);
}

}  // namespace

void Hulls::add(std::uint64_t start, std::uint64_t end) {
  if (count > 0 && (start <= range[count - 1].end + kHullGap || count == kMax)) {
    range[count - 1].end = end;
    return;
  }
  range[count].start = start;
  range[count].end = end;
  ++count;
}

void restore_memory(const Image& image, Hulls& hulls) {
  Restorer restorer(image, hulls);
  const Mapping* mappings = image.begin<Mapping>(kMappings);
  for (std::uint64_t index = 0; index < image.count(kMappings); ++index) {
    const Mapping& mapping = mappings[index];
    if (mapping.first_run + std::uint64_t{mapping.runs} > image.count(kRuns))
      fail("damaged (a mapping)");
    restorer.restore(mapping);
  }
  restorer.finish();
  prepare_hot_pages(image);
}

}  // namespace sandbox::image::loader
