#pragma once

// What a program without a C library has instead of one.

#include <asm/unistd.h>

#include <cstddef>
#include <cstdint>

namespace sandbox::image::loader {

inline long system_call(long number, long a, long b, long c, long d, long e, long f) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}

template <class T>
long as_argument(T value) {
  return (long)value;  // pointers as well as numbers
}

// The result, or -errno.
template <class... Arguments>
long call(long number, Arguments... arguments) {
  long all[6] = {as_argument(arguments)...};
  return system_call(number, all[0], all[1], all[2], all[3], all[4], all[5]);
}

std::size_t length(const char* text);
bool equal(const char* one, const char* other);

// Ends the process with kLoaderFailed after a line on stderr: "loader: WHAT: DETAIL (errno N)", or
// with words in place of the number.
// `error`: a negative errno, or 0.
[[noreturn]] void fail(const char* what, const char* detail = nullptr, long error = 0);

// Another descriptor of what stderr was at the start: the process may have had a file of its own as
// its stderr, which comes back before everything else does.
void report_to(int fd);

// `result` unless it is an error: then fails.
long check(long result, const char* what, const char* detail = nullptr);

// mmap at exactly `address`; fails otherwise.
void map_at(std::uint64_t address, std::uint64_t size, int protection, int flags, int fd,
            std::uint64_t offset, const char* what);

void read_fully(int fd, void* to, std::uint64_t size, std::uint64_t offset, const char* what);

// argv: the words after the program's own name; ends with a null.
[[noreturn]] void boot(char** arguments, char** environment, std::uint64_t* auxv);
[[noreturn]] void thaw(char** arguments);

// Moves the kernel's vdso out of the way and fills the table at kVdsoTable.
void set_up_vdso();

}  // namespace sandbox::image::loader

extern "C" {
void* memcpy(void* to, const void* from, std::size_t size);
void* memset(void* to, int byte, std::size_t size);
int memcmp(const void* one, const void* other, std::size_t size);
// A whole shared object, page-aligned. Hidden: reached without a GOT, which nobody would fill.
[[gnu::visibility("hidden")]] extern const char vdso_proxy[];
}
