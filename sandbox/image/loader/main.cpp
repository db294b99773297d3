#include "sandbox/image/loader/system.hpp"

// `stack` is as the kernel left it: argc, argv, null, environment, null, auxv.
extern "C" [[noreturn]] void loader_main(std::uint64_t* stack) {
  using namespace sandbox::image::loader;
  std::uint64_t count = stack[0];
  char** arguments = reinterpret_cast<char**>(stack + 1);
  char** environment = arguments + count + 1;
  char** end = environment;
  while (*end) ++end;
  if (count >= 3 && equal(arguments[1], "boot"))
    boot(arguments + 2, environment, reinterpret_cast<std::uint64_t*>(end + 1));
  if (count >= 3 && equal(arguments[1], "thaw")) thaw(arguments + 2);
  fail("usage: loader boot PROGRAM ARGUMENTS... | loader thaw IMAGE [BASE]");
}
