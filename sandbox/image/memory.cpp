#include "sandbox/image/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "sandbox/bounded_text.hpp"

namespace sandbox::image {

namespace {

constexpr std::uint64_t kChunk = 4 << 20;        // copied at a time
constexpr std::size_t kPagemapChunk = 64 << 10;  // entries read at a time
constexpr std::uint64_t kMaxGap = 4;             // clean pages within a run: cheaper than two runs
constexpr std::uint64_t kMappedRun = 64;  // pages from which on a run is mapped instead of copied
constexpr std::size_t kMaxRuns = 4'000'000;

// pagemap entries: in memory or swapped out, and not a page of a file.
bool is_own(std::uint64_t entry) {
  constexpr std::uint64_t kPresent = 1ull << 63, kSwapped = 1ull << 62, kOfFile = 1ull << 61;
  return (entry & (kPresent | kSwapped)) && !(entry & kOfFile);
}

bool is_file(const MapsLine& line) { return line.path.starts_with('/'); }

std::uint64_t pages_of(const MapsLine& line) { return (line.end - line.start) / kPageSize; }

// Must not come from a file in a thaw: the kernel treats it as it treats anonymous memory only.
bool is_real(const Mapping& mapping) { return mapping.flags & (kLocked | kDontFork); }

// Without a name and mapped once, nothing tells it from anonymous shared memory: the process is
// alone.
bool is_only_here(const MapsLine& line, const std::vector<MapsLine>& lines) {
  bool nameless = line.path.starts_with("/dev/zero") || line.path.ends_with(" (deleted)");
  return nameless && std::ranges::count(lines, line.inode, &MapsLine::inode) == 1;
}

}  // namespace

PageMap::PageMap(pid_t pid)
    : file_(open(proc_path(pid, "pagemap").c_str(), O_RDONLY | O_CLOEXEC)),
      entries_(kPagemapChunk) {
  if (!file_) refuse_errno("cannot read the process's page map");
}

std::vector<Pages> PageMap::own(std::uint64_t start, std::uint64_t end, std::uint64_t gap,
                                std::uint64_t& count) {
  std::vector<Pages> all;
  std::uint64_t pages = (end - start) / kPageSize;
  for (std::uint64_t first = 0; first < pages; first += kPagemapChunk) {
    std::uint64_t size = std::min<std::uint64_t>(kPagemapChunk, pages - first);
    auto offset = static_cast<off_t>((start / kPageSize + first) * sizeof entries_[0]);
    ssize_t got = pread(file_.get(), entries_.data(), size * sizeof entries_[0], offset);
    if (got != static_cast<ssize_t>(size * sizeof entries_[0]))
      refuse_errno("cannot read the process's page map");
    for (std::uint64_t index = 0; index < size; ++index) {
      if (!is_own(entries_[index])) continue;
      std::uint64_t page = first + index;
      ++count;
      if (!all.empty() && page <= all.back().end + gap)
        all.back().end = page + 1;
      else
        all.push_back({page, page + 1});
    }
  }
  return all;
}

std::vector<HotRun> own_runs(pid_t pid, const std::vector<Mapping>& mappings, std::uint64_t gap) {
  PageMap pagemap(pid);
  std::vector<HotRun> runs;
  for (const Mapping& mapping : mappings) {
    std::uint64_t count = 0;
    if (mapping.flags & kShared || !(mapping.protection & PROT_WRITE)) continue;
    for (const Pages& part : pagemap.own(mapping.start, mapping.end, gap, count))
      runs.push_back({mapping.start + part.first * kPageSize, (part.end - part.first) * kPageSize});
  }
  return runs;
}

Memory::Memory(MemoryInput input, Metadata& metadata, Writer& writer,
               std::vector<std::string>& lost)
    : input_(std::move(input)), metadata_(metadata), writer_(writer), lost_(lost) {
  buffer_.resize(kChunk);
}

Memory::Planned Memory::begin(const MapsLine& line) const {
  Planned planned;
  planned.mapping.start = line.start;
  planned.mapping.end = line.end;
  planned.mapping.offset = line.offset;
  planned.mapping.protection = line.protection;
  for (const Advice& advice : input_.advice)
    if (advice.start <= line.start && line.start < advice.end) planned.mapping.flags = advice.flags;
  return planned;
}

const std::optional<InnerRoot::Found>& Memory::find(const std::string& path) {
  if (path != found_path_) {  // mappings of one file follow each other
    found_path_ = path;
    found_ = input_.root.find(path);
  }
  return found_;
}

std::uint32_t Memory::file_index(const std::string& path, const InnerRoot::Found& found,
                                 bool may_change) {
  std::uint64_t inode = path.starts_with(input_.copied) ? 0 : found.inode;
  File file{found.size, found.modified_ns, inode, 0, may_change};
  if (!metadata_.files.empty()) {
    const File& last = metadata_.files.back();
    if (last.inode == file.inode && last.may_change == file.may_change &&
        metadata_.string(last.path) == path)
      return static_cast<std::uint32_t>(metadata_.files.size() - 1);
  }
  file.path = metadata_.add_string(path);
  metadata_.files.push_back(file);
  return static_cast<std::uint32_t>(metadata_.files.size() - 1);
}

std::uint64_t Memory::shared_bytes(const std::vector<MapsLine>& lines) {
  std::uint64_t bytes = 0;
  for (const MapsLine& line : lines)
    if (line.shared) bytes += line.end - line.start;
  return bytes;
}

void Memory::save_shared(pid_t pid, const std::vector<MapsLine>& lines) {
  pid_ = pid;
  memory_ = Handle(open(proc_path(pid, "mem").c_str(), O_RDONLY | O_CLOEXEC));
  for (const MapsLine& line : lines)
    if (line.shared) save_shared(line, lines);
}

void Memory::save_shared(const MapsLine& line, const std::vector<MapsLine>& lines) {
  Planned planned = begin(line);
  planned.mapping.flags |= kShared;
  auto descriptor = std::ranges::find_if(metadata_.descriptors, [&](const Descriptor& each) {
    return each.kind == DescriptorKind::saved_file && each.value == line.inode;
  });
  if (descriptor != metadata_.descriptors.end()) {
    planned.mapping.source = Source::descriptor;
    planned.mapping.file = static_cast<std::uint32_t>(descriptor->number);
  } else if (auto found = is_file(line) ? find(line.path) : std::nullopt;
             found && found->inode == line.inode && !found->temporary) {
    planned.mapping.source = Source::file;
    planned.mapping.file = file_index(line.path, *found, true);
  } else {
    if (!is_only_here(line, lines))
      lost_.push_back("shared memory: no longer tied to " + readable_end(line.path, 200));
    planned.mapping.source = Source::shared_anonymous;
    std::uint64_t offset = writer_.reserve(line.end - line.start);
    copy(line.start, line.end - line.start, offset, true);
    planned.runs.push_back({line.start, line.end - line.start, offset, 0, 0});
  }
  planned_.push_back(std::move(planned));
}

void Memory::save_private(pid_t pid, const std::vector<MapsLine>& lines) {
  pid_ = pid;
  memory_ = Handle(open(proc_path(pid, "mem").c_str(), O_RDONLY | O_CLOEXEC));
  pagemap_.emplace(pid);
  if (!memory_) refuse_errno("cannot read the process's memory");
  for (const MapsLine& line : lines)
    if (!line.shared) save_private(line);
}

// False: its contents exist nowhere but in the process.
bool Memory::find_source(const MapsLine& line, Mapping& mapping) {
  if (!is_file(line)) {
    mapping.source = Source::anonymous;
    return true;
  }
  if (input_.base_inode != 0 && line.inode == input_.base_inode &&
      (line.device == input_.base_device || line.path == input_.base_path)) {
    mapping.source = Source::base;
    return true;
  }
  const auto& found = find(line.path);
  if (!found || found->inode != line.inode || found->temporary) return false;
  mapping.source = Source::file;
  return true;
}

// What decides speed and size:
//   mostly own pages: the whole mapping comes from the image, in one piece, holes and all. So do
//   the
//     parts of libraries that are relocated and then never written again;
//   few own pages: mapped as before, and the own pages put on top.
void Memory::save_private(const MapsLine& line) {
  Planned planned = begin(line);
  Mapping& mapping = planned.mapping;
  bool wiped = mapping.flags & kWipeOnFork;
  if (!find_source(line, mapping)) {
    write_whole(line, planned, nullptr);
  } else if (!wiped) {
    std::uint64_t count = 0;
    check_time();
    std::vector<Pages> own = pagemap_->own(line.start, line.end, kMaxGap, count);
    bool whole = mapping.source == Source::anonymous
                     ? count * 4 >= pages_of(line) && !is_real(mapping) && line.path != "[stack]"
                     : mapping.source == Source::file &&
                           (!(line.protection & PROT_WRITE) || count * 3 >= pages_of(line));
    if (mapping.source == Source::file && (count == 0 || !whole))
      mapping.file = file_index(line.path, *find(line.path), false);
    if (count > 0 && whole)
      write_whole(line, planned, mapping.source == Source::anonymous ? &own : nullptr);
    else
      write_runs(line, planned, own);
  }
  planned_.push_back(std::move(planned));
}

// `pages`: those with contents; null: all of them.
void Memory::write_whole(const MapsLine& line, Planned& planned, const std::vector<Pages>* pages) {
  bool has_file = is_file(line);
  planned.mapping.source = Source::image;
  planned.mapping.offset = writer_.reserve(line.end - line.start);
  std::vector<Pages> everything{{0, pages_of(line)}};
  for (const Pages& part : pages ? *pages : everything) {
    std::uint64_t at = part.first * kPageSize;
    // A file may be shorter than its mapping: there is nothing behind its end.
    copy(line.start + at, (part.end - part.first) * kPageSize, planned.mapping.offset + at,
         has_file);
  }
}

void Memory::write_runs(const MapsLine& line, Planned& planned, const std::vector<Pages>& pages) {
  bool writable = line.protection & PROT_WRITE;
  for (const Pages& part : pages) {
    std::uint64_t size = (part.end - part.first) * kPageSize;
    std::uint64_t address = line.start + part.first * kPageSize;
    bool mapped = part.end - part.first >= kMappedRun && writable && !is_real(planned.mapping);
    std::uint64_t offset = writer_.reserve(size);
    copy(address, size, offset, planned.mapping.source == Source::file);
    planned.runs.push_back({address, size, offset, mapped, 0});
  }
}

void Memory::copy(std::uint64_t address, std::uint64_t size, std::uint64_t to, bool may_fail) {
  for (std::uint64_t done = 0; done < size;) {
    std::uint64_t part = std::min(kChunk, size - done);
    check_time();
    std::uint64_t got = read(address + done, part);
    if (got == 0) {
      if (!may_fail) refuse("memory of the process cannot be read");
      got = std::min(kPageSize, part);
      std::memset(buffer_.data(), 0, got);
    }
    writer_.write(to + done, buffer_.data(), got);
    done += got;
  }
}

// Into the buffer, from the start as far as possible, whole pages.
std::uint64_t Memory::read(std::uint64_t address, std::uint64_t size) {
  iovec here{buffer_.data(), size}, there{reinterpret_cast<void*>(address), size};
  ssize_t got = process_vm_readv(pid_, &here, 1, &there, 1, 0);
  // Memory that the process itself may not read at the moment (PROT_NONE) has contents, too.
  if (got <= 0) got = pread(memory_.get(), buffer_.data(), size, static_cast<off_t>(address));
  return got <= 0 ? 0 : page_down(static_cast<std::uint64_t>(got));
}

void Memory::check_time() const {
  if (std::chrono::steady_clock::now() > input_.deadline) refuse("it took longer than allowed");
  if (input_.given_up && *input_.given_up) refuse("it was given up");
}

void Memory::finish() {
  std::ranges::sort(planned_, {}, [](const Planned& each) { return each.mapping.start; });
  for (Planned& each : planned_) {
    each.mapping.first_run = static_cast<std::uint32_t>(metadata_.runs.size());
    each.mapping.runs = static_cast<std::uint32_t>(each.runs.size());
    metadata_.runs.insert(metadata_.runs.end(), each.runs.begin(), each.runs.end());
    if (metadata_.runs.size() > kMaxRuns) refuse("the process's memory is too scattered");
    metadata_.mappings.push_back(each.mapping);
  }
}

}  // namespace sandbox::image
