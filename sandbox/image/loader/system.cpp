#include "sandbox/image/loader/system.hpp"

#include <errno.h>
#include <sys/mman.h>

// The compiler calls these three by itself.
extern "C" {

void* memcpy(void* to, const void* from, std::size_t size) {
  void* result = to;
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(size)::"memory");
  return result;
}

void* memset(void* to, int byte, std::size_t size) {
  void* result = to;
  asm volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(byte) : "memory");
  return result;
}

int memcmp(const void* one, const void* other, std::size_t size) {
  const auto* left = static_cast<const unsigned char*>(one);
  const auto* right = static_cast<const unsigned char*>(other);
  for (; size > 0; --size, ++left, ++right)
    if (*left != *right) return *left < *right ? -1 : 1;
  return 0;
}
}

namespace sandbox::image::loader {

namespace {

constexpr int kFailed = 121;  // kLoaderFailed (image.hpp)

int report = 2;  // where fail() writes

class Line {
 public:
  void add(const char* text) {
    while (*text && size_ < sizeof text_) text_[size_++] = *text++;
  }
  void add(long number) {
    char digits[24];
    int at = sizeof digits;
    digits[--at] = 0;
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0);
    add(digits + at);
  }
  void write() { call(__NR_write, report, text_, size_); }

 private:
  char text_[1024];
  std::size_t size_ = 0;
};

// For the reader; null: the number has to do.
const char* describe(long error) {
  if (error == -ENOENT) return "it is not there any more";
  if (error == -ENOTDIR) return "it is not in a directory any more";
  if (error == -EACCES) return "it may not be opened any more";
  if (error == -ENOMEM) return "there is not enough memory";
  return nullptr;
}

}  // namespace

void report_to(int fd) { report = fd; }

std::size_t length(const char* text) {
  std::size_t size = 0;
  while (text[size]) ++size;
  return size;
}

bool equal(const char* one, const char* other) {
  while (*one && *one == *other) ++one, ++other;
  return *one == *other;
}

void fail(const char* what, const char* detail, long error) {
  Line line;
  line.add("loader: ");
  line.add(what);
  if (detail) {
    line.add(": ");
    line.add(detail);
  }
  if (const char* reason = describe(error)) {
    line.add(": ");
    line.add(reason);
  } else if (error < 0) {
    line.add(" (errno ");
    line.add(-error);
    line.add(")");
  }
  line.add("\n");
  line.write();
  for (;;) call(__NR_exit_group, kFailed);
}

long check(long result, const char* what, const char* detail) {
  if (result < 0) fail(what, detail, result);
  return result;
}

void map_at(std::uint64_t address, std::uint64_t size, int protection, int flags, int fd,
            std::uint64_t offset, const char* what) {
  check(call(__NR_mmap, address, size, protection, flags | MAP_FIXED, fd, offset), what);
}

void read_fully(int fd, void* to, std::uint64_t size, std::uint64_t offset, const char* what) {
  for (std::uint64_t done = 0; done < size;) {
    long part = call(__NR_pread64, fd, static_cast<char*>(to) + done, size - done, offset + done);
    if (part <= 0) fail(what, part == 0 ? "it ends too early" : nullptr, part);
    done += static_cast<std::uint64_t>(part);
  }
}

}  // namespace sandbox::image::loader
