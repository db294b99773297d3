#pragma once

#include "sandbox/image/format.hpp"
#include "sandbox/image/loader/system.hpp"

// The steps of a thaw, in the order of thaw.cpp, one file each. They fail the whole process rather
// than make one that differs from what was frozen.
namespace sandbox::image::loader {

// The image's metadata, mapped at kMetadata; checked to be undamaged, which is not to say truthful.
class Image {
 public:
  int fd = -1;
  int base_fd = -1;  // of the image it refers to; -1: none
  int report = -1;   // for what fail() says
  int floor = 4;     // descriptors from here on are free for our own use

  const Header& header() const { return *reinterpret_cast<const Header*>(kMetadata); }
  template <class T>
  const T* begin(Sections section) const {
    return reinterpret_cast<const T*>(metadata() + header().sections[section].offset);
  }
  std::uint64_t count(Sections section) const { return header().sections[section].count; }
  const ProcessState& process() const { return *begin<ProcessState>(kProcess); }
  const char* string(std::uint32_t offset) const { return begin<char>(kStrings) + offset; }
  // Behind the header's page.
  static const char* metadata() { return reinterpret_cast<const char*>(kMetadata + kPageSize); }
};

// image_file.cpp: opens, maps and checks the metadata; moves the descriptors out of the way of the
// process's own. `base`: null if none was given.
Image open_image(const char* image, const char* base);

// descriptors.cpp: all of the process's descriptors, at their numbers.
void restore_descriptors(const Image& image);

// memory.cpp: all mappings with their contents. `hulls` then cover what is mapped from images.
struct Hulls {
  static constexpr int kMax = 48;
  int count = 0;
  struct {
    std::uint64_t start, end;
  } range[kMax];

  // By ascending address. Near ones become one.
  void add(std::uint64_t start, std::uint64_t end);
};
void restore_memory(const Image& image, Hulls& hulls);

// filter.cpp: refuses the calls that would tell memory mapped from an image from anonymous memory.
void install_filter(const Hulls& hulls);

// threads.cpp: copies what threads continue from to kFrames, so that the metadata can go.
void prepare_threads(const Image& image);
// Makes the other threads, queues pending signals, lets all of them go on. `threads`: how many.
[[noreturn]] void continue_threads(std::uint64_t threads, const QueuedSignal* signals,
                                   std::uint64_t signal_count);

}  // namespace sandbox::image::loader
