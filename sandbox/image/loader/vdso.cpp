#include <elf.h>
#include <fcntl.h>
#include <linux/mman.h>
#include <sys/mman.h>

#include "sandbox/image/layout.hpp"
#include "sandbox/image/loader/system.hpp"

namespace sandbox::image::loader {

namespace {

constexpr const char* kNames[] = {"__vdso_clock_gettime", "__vdso_gettimeofday", "__vdso_time",
                                  "__vdso_clock_getres", "__vdso_getcpu"};
constexpr int kCount = 5;

// For a kernel without one of them. Leaves: the freezer steps threads out of them.
long clock_gettime(long clock, void* time) { return call(__NR_clock_gettime, clock, time); }
long gettimeofday(void* time, void* zone) { return call(__NR_gettimeofday, time, zone); }
long time(void* time) { return call(__NR_time, time); }
long clock_getres(long clock, void* time) { return call(__NR_clock_getres, clock, time); }
long getcpu(void* cpu, void* node, void*) { return call(__NR_getcpu, cpu, node, 0); }

struct Range {
  std::uint64_t start, end;
  bool code;  // [vdso], else one of the pages of data before it
};

constexpr int kMaxRanges = 8;
char maps[32 << 10];

const char* read_hex(const char* text, std::uint64_t& value) {
  for (value = 0;; ++text) {
    if (*text >= '0' && *text <= '9')
      value = value * 16 + static_cast<std::uint64_t>(*text - '0');
    else if (*text >= 'a' && *text <= 'f')
      value = value * 16 + static_cast<std::uint64_t>(*text - 'a' + 10);
    else
      return text;
  }
}

bool starts(const char* text, const char* with) {
  while (*with)
    if (*text++ != *with++) return false;
  return true;
}

// The kernel's own mappings, whatever their number: [vvar], [vvar_vclock] (6.13), [vdso].
int find_ranges(Range (&ranges)[kMaxRanges]) {
  int fd = static_cast<int>(check(call(__NR_open, "/proc/self/maps", O_RDONLY), "/proc/self/maps"));
  std::size_t size = 0;
  for (long part; size < sizeof maps - 1; size += static_cast<std::size_t>(part)) {
    part = check(call(__NR_read, fd, maps + size, sizeof maps - 1 - size), "/proc/self/maps");
    if (part == 0) break;
  }
  call(__NR_close, fd);
  maps[size] = 0;
  int count = 0;
  for (char* line = maps; *line && count < kMaxRanges;) {
    char* end = line;
    while (*end && *end != '\n') ++end;
    char* next = *end ? end + 1 : end;
    *end = 0;
    char* name = end;
    while (name > line && name[-1] != ' ') --name;
    if (starts(name, "[vvar") || equal(name, "[vdso]")) {
      Range& range = ranges[count++];
      const char* rest = read_hex(line, range.start);
      read_hex(rest + 1, range.end);
      range.code = name[2] == 'd';
    }
    line = next;
  }
  return count;
}

// Moves them, with their distances: the code finds its data by them. Returns where the code is now.
std::uint64_t move(const Range* ranges, int count) {
  std::uint64_t lowest = ~0ull, code = 0;
  for (int index = 0; index < count; ++index)
    if (ranges[index].start < lowest) lowest = ranges[index].start;
  for (int index = 0; index < count; ++index) {
    const Range& range = ranges[index];
    std::uint64_t to = kMovedVdso + range.start - lowest, size = range.end - range.start;
    check(call(__NR_mremap, range.start, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to),
          "cannot move the vdso");
    if (range.code) code = to;
  }
  return code;
}

void look_up(std::uint64_t vdso, std::uint64_t* table) {
  auto* header = reinterpret_cast<Elf64_Ehdr*>(vdso);
  auto* programs = reinterpret_cast<Elf64_Phdr*>(vdso + header->e_phoff);
  std::uint64_t bias = 0;
  Elf64_Dyn* dynamic = nullptr;
  for (int index = 0; index < header->e_phnum; ++index) {
    const Elf64_Phdr& program = programs[index];
    if (program.p_type == PT_LOAD) bias = vdso + program.p_offset - program.p_vaddr;
    if (program.p_type == PT_DYNAMIC)
      dynamic = reinterpret_cast<Elf64_Dyn*>(vdso + program.p_offset);
  }
  Elf64_Sym* symbols = nullptr;
  const char* strings = nullptr;
  for (; dynamic && dynamic->d_tag != DT_NULL; ++dynamic) {
    if (dynamic->d_tag == DT_SYMTAB)
      symbols = reinterpret_cast<Elf64_Sym*>(bias + dynamic->d_un.d_ptr);
    if (dynamic->d_tag == DT_STRTAB)
      strings = reinterpret_cast<const char*>(bias + dynamic->d_un.d_ptr);
  }
  // The strings follow the symbols in every kernel's vdso; where not, system calls do the work.
  if (!symbols || reinterpret_cast<const char*>(symbols) > strings) return;
  for (Elf64_Sym* symbol = symbols; reinterpret_cast<const char*>(symbol + 1) <= strings; ++symbol)
    for (int index = 0; index < kCount; ++index)
      if (symbol->st_value && equal(strings + symbol->st_name, kNames[index]))
        table[index] = bias + symbol->st_value;
}

}  // namespace

void set_up_vdso() {
  map_at(kVdsoTable, kPageSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0,
         "cannot map the vdso's table");
  auto* table = reinterpret_cast<std::uint64_t*>(kVdsoTable);
  table[0] = reinterpret_cast<std::uint64_t>(clock_gettime);
  table[1] = reinterpret_cast<std::uint64_t>(gettimeofday);
  table[2] = reinterpret_cast<std::uint64_t>(time);
  table[3] = reinterpret_cast<std::uint64_t>(clock_getres);
  table[4] = reinterpret_cast<std::uint64_t>(getcpu);
  Range ranges[kMaxRanges];
  if (std::uint64_t vdso = move(ranges, find_ranges(ranges))) look_up(vdso, table);
  check(call(__NR_mprotect, kVdsoTable, kPageSize, PROT_READ), "cannot protect the vdso's table");
}

}  // namespace sandbox::image::loader
