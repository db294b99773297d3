#include <elf.h>
#include <fcntl.h>
#include <linux/prctl.h>
#include <sys/mman.h>

#include "sandbox/image/layout.hpp"
#include "sandbox/image/loader/system.hpp"

// execve in user space. Doing it ourselves decides where everything lies and what the C library is
// told about its surroundings, without touching the personality: address space randomisation stays
// on, no capability is needed, and the loader stays mapped beside the program.
//
// /proc/self/exe goes on naming the loader (changing it needs a capability).
namespace sandbox::image::loader {

namespace {

constexpr int kMaxSegments = 32;
constexpr std::uint64_t kRandomSize = 16;  // AT_RANDOM

struct Program {
  Elf64_Ehdr header{};
  Elf64_Phdr segments[kMaxSegments]{};
  std::uint64_t bias = 0;  // added to its addresses
  char interpreter[256] = {};
  std::uint64_t start_code = 0, end_code = 0, start_data = 0, end_data = 0;
};

constinit Program program, interpreter;

int protection(const Elf64_Phdr& segment) {
  return (segment.p_flags & PF_R ? PROT_READ : 0) | (segment.p_flags & PF_W ? PROT_WRITE : 0) |
         (segment.p_flags & PF_X ? PROT_EXEC : 0);
}

void map_segment(const Elf64_Phdr& segment, std::uint64_t bias, int fd, const char* path) {
  std::uint64_t address = segment.p_vaddr + bias;
  std::uint64_t start = page_down(address);
  std::uint64_t file_end = address + segment.p_filesz, end = address + segment.p_memsz;
  int access = protection(segment);
  if (segment.p_filesz > 0)
    map_at(start, file_end - start, access, MAP_PRIVATE, fd, page_down(segment.p_offset), path);
  std::uint64_t file_pages_end = segment.p_filesz > 0 ? page_up(file_end) : start;
  // What follows the file's last byte in its page is to be zero, as is the rest of .bss.
  if (end > file_end && file_pages_end > file_end && (access & PROT_WRITE))
    memset(reinterpret_cast<void*>(file_end), 0, file_pages_end - file_end);
  if (end > file_pages_end)
    map_at(file_pages_end, end - file_pages_end, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, path);
}

void load(Program& into, const char* path, std::uint64_t at) {
  int fd =
      static_cast<int>(check(call(__NR_open, path, O_RDONLY | O_CLOEXEC), "cannot open", path));
  read_fully(fd, &into.header, sizeof into.header, 0, path);
  const Elf64_Ehdr& header = into.header;
  if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_machine != EM_X86_64 || header.e_phentsize != sizeof(Elf64_Phdr) ||
      header.e_phnum > kMaxSegments)
    fail("not a program for this machine", path);
  read_fully(fd, into.segments, header.e_phnum * sizeof(Elf64_Phdr), header.e_phoff, path);
  into.bias = header.e_type == ET_DYN ? at : 0;
  for (int index = 0; index < header.e_phnum; ++index) {
    const Elf64_Phdr& segment = into.segments[index];
    if (segment.p_type == PT_INTERP && segment.p_filesz < sizeof into.interpreter)
      read_fully(fd, into.interpreter, segment.p_filesz, segment.p_offset, path);
    if (segment.p_type != PT_LOAD) continue;
    map_segment(segment, into.bias, fd, path);
    std::uint64_t start = segment.p_vaddr + into.bias, end = start + segment.p_filesz;
    if (segment.p_flags & PF_X) into.start_code = start, into.end_code = end;
    if (segment.p_flags & PF_W) into.start_data = start, into.end_data = end;
  }
  call(__NR_close, fd);
}

std::uint64_t program_headers() {
  for (int index = 0; index < program.header.e_phnum; ++index)
    if (program.segments[index].p_type == PT_PHDR)
      return program.segments[index].p_vaddr + program.bias;
  return 0;
}

// The stack as the kernel would have made it: strings at the top, below them the words that _start
// finds: argc, argv, environment, auxv.
class Stack {
 public:
  Stack(char** arguments, char** environment, std::uint64_t* auxv)
      : arguments_(arguments), environment_(environment), auxv_(auxv) {
    std::uint64_t text = length(arguments[0]) + 1 + kRandomSize, words = 1;
    for (char** word = arguments; *word; ++word) text += length(*word) + 1, ++words;
    for (char** word = environment; *word; ++word) text += length(*word) + 1, ++words;
    for (std::uint64_t* pair = auxv; pair[0]; pair += 2) {
      if (pair[0] == AT_PLATFORM || pair[0] == AT_BASE_PLATFORM)
        text += length(reinterpret_cast<char*>(pair[1])) + 1;
      words += 2;
    }
    words += 4;  // the nulls behind argv and environment, and the pair that ends auxv
    std::uint64_t strings = kStackEnd - 64 - text;
    if (text + words * 8 > kStackSize / 2) fail("too many arguments");
    map_at(kStackEnd - kStackSize, kStackSize, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0, "cannot map a stack");
    top_ = (strings - words * 8) & ~15ull;
    next_string_ = reinterpret_cast<char*>(strings);
    next_word_ = reinterpret_cast<std::uint64_t*>(top_);
  }

  void fill(prctl_mm_map& fields) {
    std::uint64_t count = 0;
    while (arguments_[count]) ++count;
    *next_word_++ = count;
    fields.arg_start = here();
    for (char** word = arguments_; *word; ++word) *next_word_++ = put(*word);
    fields.arg_end = fields.env_start = here();
    *next_word_++ = 0;
    for (char** word = environment_; *word; ++word) *next_word_++ = put(*word);
    fields.env_end = here();
    *next_word_++ = 0;
    auto* auxv = next_word_;
    for (std::uint64_t* pair = auxv_; pair[0]; pair += 2) {
      *next_word_++ = pair[0];
      *next_word_++ = value(pair[0], pair[1]);
    }
    *next_word_++ = AT_NULL;
    *next_word_++ = 0;
    fields.auxv = reinterpret_cast<__u64*>(auxv);
    fields.auxv_size = static_cast<__u32>((next_word_ - auxv) * 8);
    fields.start_stack = top_;
  }

  std::uint64_t top() const { return top_; }

 private:
  std::uint64_t here() const { return reinterpret_cast<std::uint64_t>(next_string_); }

  std::uint64_t put(const void* bytes, std::size_t size) {
    std::uint64_t at = here();
    memcpy(next_string_, bytes, size);
    next_string_ += size;
    return at;
  }
  std::uint64_t put(const char* text) { return put(text, length(text) + 1); }

  std::uint64_t value(std::uint64_t type, std::uint64_t given) {
    switch (type) {
      case AT_SYSINFO_EHDR:
        return reinterpret_cast<std::uint64_t>(vdso_proxy);
      case AT_RANDOM:
        return put(reinterpret_cast<void*>(given), kRandomSize);
      case AT_PLATFORM:
      case AT_BASE_PLATFORM:
        return put(reinterpret_cast<char*>(given));
      case AT_EXECFN:
        return put(arguments_[0]);
      case AT_PHDR:
        return program_headers();
      case AT_PHNUM:
        return program.header.e_phnum;
      case AT_BASE:
        return interpreter.bias;
      case AT_ENTRY:
        return program.header.e_entry + program.bias;
      default:
        return given;
    }
  }

  char** arguments_;
  char** environment_;
  std::uint64_t* auxv_;
  std::uint64_t top_;
  char* next_string_;
  std::uint64_t* next_word_;
};

}  // namespace

void boot(char** arguments, char** environment, std::uint64_t* auxv) {
  set_up_vdso();
  load(program, arguments[0], kProgram);
  if (!program.interpreter[0]) fail("not dynamically linked", arguments[0]);
  load(interpreter, program.interpreter, kInterpreter);

  prctl_mm_map fields{};
  Stack stack(arguments, environment, auxv);
  stack.fill(fields);
  fields.start_code = program.start_code;
  fields.end_code = program.end_code;
  fields.start_data = program.start_data;
  fields.end_data = program.end_data;
  fields.start_brk = fields.brk = kHeap;
  fields.exe_fd = ~0u;
  const char* name = arguments[0];
  for (const char* at = name; *at; ++at)
    if (*at == '/') name = at + 1;
  call(__NR_prctl, PR_SET_NAME, name);

  // The kernel's own stack, and whatever else it mapped for us. `arguments` and `environment` were
  // there; the copies are on the new stack.
  check(call(__NR_munmap, kHeap, kUserEnd - kHeap), "cannot unmap the old stack");
  // So that brk works from kHeap on and /proc/self/cmdline is right.
  check(call(__NR_prctl, PR_SET_MM, PR_SET_MM_MAP, &fields, sizeof fields, 0),
        "this kernel does not let a process describe its memory (PR_SET_MM_MAP)");
  asm volatile(
      "mov %0, %%rsp\n"
      "xor %%edx, %%edx\n"  // no function to register with atexit
      "xor %%ebp, %%ebp\n"
      "jmp *%1"
      :
      : "r"(stack.top()), "r"(interpreter.header.e_entry + interpreter.bias)
      : "memory");
  __builtin_unreachable();
}

}  // namespace sandbox::image::loader
