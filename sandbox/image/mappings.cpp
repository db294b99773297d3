#include "sandbox/image/mappings.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

namespace sandbox::image {

namespace {

constexpr std::size_t kMaxMappings = 70'000;  // vm.max_map_count is 65,530

// The kernel writes a newline as \012.
std::string unescaped(std::string_view path) {
  std::string text;
  for (std::size_t at = 0; at < path.size(); ++at) {
    if (path.substr(at).starts_with("\\012")) {
      text += '\n';
      at += 3;
    } else {
      text += path[at];
    }
  }
  return text;
}

bool is_ours(const MapsLine& line) {
  if (line.start >= kReserved && line.start < kReservedEnd) return true;
  return line.start >= kUserEnd || line.path == "[vdso]" || line.path.starts_with("[vvar") ||
         line.path == "[vsyscall]";
}

// start-end perms offset device inode path
MapsLine parse_line(std::string_view text) {
  MapsLine line;
  auto words = split_words(text.substr(0, 200));
  if (words.size() < 5 || words[1].size() < 4 || words[3].find(':') == words[3].npos)
    refuse("the kernel's list of mappings cannot be read");
  std::size_t dash = words[0].find('-');
  line.start = parse_number(words[0].substr(0, dash), 16);
  line.end = parse_number(words[0].substr(dash + 1), 16);
  line.protection = (words[1][0] == 'r' ? PROT_READ : 0u) | (words[1][1] == 'w' ? PROT_WRITE : 0u) |
                    (words[1][2] == 'x' ? PROT_EXEC : 0u);
  line.shared = words[1][3] == 's';
  line.offset = parse_number(words[2], 16);
  std::size_t colon = words[3].find(':');
  line.device = makedev(static_cast<unsigned>(parse_number(words[3].substr(0, colon), 16)),
                        static_cast<unsigned>(parse_number(words[3].substr(colon + 1), 16)));
  line.inode = parse_number(words[4]);
  auto after = static_cast<std::size_t>(words[4].data() + words[4].size() - text.data());
  std::size_t path = text.find_first_not_of(' ', after);
  if (path != text.npos) line.path = unescaped(text.substr(path));
  return line;
}

std::uint32_t flags_of(std::string_view words) {
  constexpr struct {
    std::string_view word;
    std::uint32_t flag;
  } kFlags[] = {{"hg", kHuge},       {"nh", kNoHuge},   {"dc", kDontFork},
                {"wf", kWipeOnFork}, {"dd", kDontDump}, {"lo", kLocked}};
  std::uint32_t flags = 0;
  for (std::string_view word : split_words(words))
    for (const auto& each : kFlags)
      if (word == each.word) flags |= each.flag;
  return flags;
}

}  // namespace

std::vector<MapsLine> read_maps(pid_t pid) {
  std::optional<std::string> text = read_proc(proc_path(pid, "maps"));
  if (!text) refuse("cannot read the process's mappings");
  std::vector<MapsLine> lines;
  for (std::string_view each : split_lines(*text)) {
    MapsLine line = parse_line(each);
    if (is_ours(line)) continue;
    if (line.start >= line.end || (line.start | line.end | line.offset) % kPageSize != 0 ||
        (!lines.empty() && line.start < lines.back().end))
      refuse("the kernel's list of mappings cannot be read");
    lines.push_back(std::move(line));
    if (lines.size() > kMaxMappings) refuse("the process has too many mappings");
  }
  return lines;
}

std::vector<Advice> read_advice(pid_t pid) {
  std::vector<Advice> all;
  std::string text = read_proc(proc_path(pid, "smaps")).value_or("");
  Advice current;
  for (std::string_view line : split_lines(text)) {
    std::size_t dash = line.find('-');
    if (line.starts_with("VmFlags:")) {
      current.flags = flags_of(line.substr(8));
      if (current.flags) all.push_back(current);
    } else if (line.starts_with("ProtectionKey:") && parse_number(split_words(line).back()) != 0) {
      refuse("some of its memory has a protection key");
    } else if (dash != line.npos && dash < 17 && line.find(':') > dash) {
      current.start = parse_number(line.substr(0, dash), 16);
      current.end = parse_number(line.substr(dash + 1, 16), 16);
    }
  }
  return all;
}

InnerRoot::InnerRoot(pid_t pid)
    : root_(open(proc_path(pid, "root").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC)) {
  if (!root_) refuse_errno("cannot look into the sandbox");
  std::string mounts = read_proc("/proc/self/mountinfo").value_or("");
  for (std::string_view line : split_lines(mounts)) {
    auto words = split_words(line);
    if (words.size() < 3) continue;
    std::size_t colon = words[2].find(':');
    if (colon == words[2].npos) continue;
    outside_.insert(makedev(static_cast<unsigned>(parse_number(words[2].substr(0, colon))),
                            static_cast<unsigned>(parse_number(words[2].substr(colon + 1)))));
  }
}

std::optional<InnerRoot::Found> InnerRoot::find(const std::string& path) const {
  open_how how{};
  how.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  Handle file(static_cast<int>(syscall(SYS_openat2, root_.get(), path.c_str(), &how, sizeof how)));
  struct stat status {};
  struct statfs system {};
  if (!file || fstat(file.get(), &status) == -1 || fstatfs(file.get(), &system) == -1)
    return std::nullopt;
  Found found;
  found.inode = status.st_ino;
  found.device = status.st_dev;
  found.size = static_cast<std::uint64_t>(status.st_size);
  found.modified_ns = status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec;
  found.temporary = system.f_type == TMPFS_MAGIC && !outside_.contains(found.device);
  return found;
}

}  // namespace sandbox::image
