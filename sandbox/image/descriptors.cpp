#include "sandbox/image/descriptors.hpp"

#include <fcntl.h>
#include <linux/kcmp.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "sandbox/bounded_text.hpp"
#include "sandbox/image/channels.hpp"

namespace sandbox::image {

namespace {

constexpr int kSupplied = 4;  // 0 to 3 are given to the loader
constexpr std::size_t kMaxDescriptors = 65'536;
constexpr std::uint64_t kMaxSavedFile = 256 << 20;
constexpr std::string_view kDevices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                         "/dev/urandom"};

struct Open {
  Descriptor record{};
  std::string link;  // as readlink shows it
  std::string info;  // fdinfo
  struct stat status {};
};

class Capture {
 public:
  Capture(const Tracee& tracee, const InnerRoot& root, Metadata& metadata, Writer& writer,
          std::vector<std::string>& lost)
      : pid_(tracee.pid()),
        root_(root),
        metadata_(metadata),
        writer_(writer),
        lost_(lost),
        channels_(pid_, writer) {}

  void run() {
    read();
    find_duplicates();
    for (Open& open : open_) classify(open);
    pair_channels();
    for (const Open& open : open_) {
      if (open.info.find("\nlock:") != open.info.npos && open.record.kind == DescriptorKind::file)
        lost_.push_back(name(open) + ": its lock on " + readable_end(open.link, 200));
      add_watches(open);
      metadata_.descriptors.push_back(open.record);
    }
  }

 private:
  static std::string name(const Open& open) {
    return "descriptor " + std::to_string(open.record.number);
  }

  void lose(Open& open, const std::string& what) {
    open.record.kind = DescriptorKind::lost;
    open.record.other = -1;
    lost_.push_back(name(open) + ": " + what);
  }

  void read() {
    std::vector<int> numbers = list_numbers(proc_path(pid_, "fd"));
    if (numbers.size() > kMaxDescriptors) refuse("the process has too many descriptors");
    for (int number : numbers) {
      Open open;
      open.record.number = number;
      open.record.other = -1;
      std::string path = proc_path(pid_, "fd/" + std::to_string(number));
      open.link = read_link(path);
      open.info = read_proc(proc_path(pid_, "fdinfo/" + std::to_string(number))).value_or("");
      if (stat(path.c_str(), &open.status) == -1) continue;
      open.record.flags = static_cast<std::uint32_t>(parse_number(field(open.info, "flags"), 8));
      open.record.position = parse_number(field(open.info, "pos"));
      open.record.mode = open.status.st_mode & 07777;
      open_.push_back(std::move(open));
    }
  }

  // Negative, 0, positive: an order of what is open, not of numbers. Same file and 0: made by
  // dup().
  int compare(const Open& one, const Open& other) const {
    if (one.status.st_dev != other.status.st_dev)
      return one.status.st_dev < other.status.st_dev ? -1 : 1;
    if (one.status.st_ino != other.status.st_ino)
      return one.status.st_ino < other.status.st_ino ? -1 : 1;
    if (one.record.number == other.record.number) return 0;
    long order = syscall(SYS_kcmp, pid_, pid_, KCMP_FILE, one.record.number, other.record.number);
    if (order == 0) return 0;
    if (order == 1 || order == 2) return order == 1 ? -1 : 1;
    return one.record.number < other.record.number ? -1 : 1;  // a kernel without kcmp
  }

  void find_duplicates() {
    std::vector<Open*> order;
    for (Open& open : open_) order.push_back(&open);
    std::ranges::sort(order, [&](const Open* one, const Open* other) {
      int by_file = compare(*one, *other);
      return by_file ? by_file < 0 : one->record.number < other->record.number;
    });
    const Open* first = nullptr;
    for (Open* open : order) {
      if (first && compare(*first, *open) == 0) {
        open->record.kind = DescriptorKind::duplicate;
        open->record.other = first->record.number;
      } else {
        first = open;
      }
    }
  }

  void classify(Open& open) {
    if (open.record.kind == DescriptorKind::duplicate) return;
    const std::string& link = open.link;
    bool channel = link.starts_with("pipe:[") || link.starts_with("socket:[");
    if (open.record.number < kSupplied && (channel || link == "/dev/null")) return;  // supplied
    if (link.starts_with("pipe:["))
      open.record.kind = DescriptorKind::pipe;
    else if (link.starts_with("socket:["))
      open.record.kind = DescriptorKind::socket_pair;
    else if (link.starts_with("anon_inode:"))
      classify_anonymous(open);
    else if (link.starts_with('/'))
      classify_file(open);
    else
      lose(open, readable_end(link, 200));
  }

  void classify_anonymous(Open& open) {
    const std::string& info = open.info;
    if (open.link == "anon_inode:[eventfd]") {
      open.record.kind = DescriptorKind::eventfd;
      open.record.value = parse_number(field(info, "eventfd-count"), 16);
      open.record.extra = parse_number(field(info, "eventfd-semaphore"));
    } else if (open.link == "anon_inode:[eventpoll]") {
      open.record.kind = DescriptorKind::epoll;
    } else if (open.link == "anon_inode:[signalfd]") {
      open.record.kind = DescriptorKind::signalfd;
      open.record.value = parse_number(field(info, "sigmask"), 16);
    } else if (open.link == "anon_inode:[timerfd]") {
      open.record.kind = DescriptorKind::timerfd;
      open.record.value = parse_number(field(info, "clockid"));
      open.record.extra = parse_number(field(info, "ticks"));
      read_time(field(info, "it_interval"), open.record.timer);
      read_time(field(info, "it_value"), open.record.timer + 2);
    } else {
      lose(open, readable_end(open.link, 200));  // inotify, io_uring, userfaultfd, a pidfd...
    }
  }

  // "(seconds, nanoseconds)"
  static void read_time(std::string_view text, std::uint64_t* to) {
    std::size_t comma = text.find(", ");
    if (!text.starts_with('(') || comma == text.npos) return;
    to[0] = parse_number(text.substr(1));
    to[1] = parse_number(text.substr(comma + 2));
  }

  // A named pipe that opening it again brings back: that does not wait for anyone (it has both ends
  // itself), and nothing is in it.
  bool is_quiet(const Open& open) const {
    if ((open.record.flags & O_ACCMODE) != O_RDWR) return false;
    std::string path = proc_path(pid_, "fd/" + std::to_string(open.record.number));
    Handle pipe(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    int unread = 0;
    return pipe && ioctl(pipe.get(), FIONREAD, &unread) == 0 && unread == 0;
  }

  void classify_file(Open& open) {
    mode_t type = open.status.st_mode & S_IFMT;
    auto found = root_.find(open.link);
    bool there = found && found->inode == open.status.st_ino && found->device == open.status.st_dev;
    bool is_path = open.record.flags & O_PATH;
    bool lasts = there && !found->temporary;
    bool harmless = std::ranges::count(kDevices, std::string_view(open.link)) > 0;
    bool by_path = type == S_IFCHR ? harmless : lasts && (type == S_IFREG || type == S_IFDIR);
    if (there && type == S_IFDIR && open.link == "/") by_path = true;
    if (lasts && type == S_IFIFO && is_quiet(open)) by_path = true;
    if (by_path || (is_path && lasts)) {
      open.record.kind = DescriptorKind::file;
      open.record.path = metadata_.add_string(open.link);
    } else if (type == S_IFREG && !is_path) {
      save_file(open, there);
    } else {
      const char* what = type == S_IFCHR   ? "a device: "
                         : type == S_IFIFO ? "a named pipe: "
                         : type == S_IFDIR ? "a temporary or deleted directory: "
                                           : "";
      lose(open, what + readable_end(open.link, 200));
    }
  }

  void save_file(Open& open, bool has_name) {
    auto size = static_cast<std::uint64_t>(open.status.st_size);
    std::string path = proc_path(pid_, "fd/" + std::to_string(open.record.number));
    // A regular file, as stat said while nobody could exchange it: opening has no effect on it.
    Handle file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (size > kMaxSavedFile || !file)
      return lose(open,
                  "a temporary file of " + size_text(size) + ": " + readable_end(open.link, 200));
    open.record.kind = DescriptorKind::saved_file;
    if (has_name) open.record.path = metadata_.add_string(open.link);
    open.record.value = open.status.st_ino;  // by which memory.cpp knows it
    open.record.full_size = size;
    open.record.contents = writer_.reserve(size);
    std::string buffer(1 << 20, '\0');
    while (open.record.contents_size < size) {
      std::uint64_t at = open.record.contents_size;
      ssize_t part =
          pread(file.get(), buffer.data(), std::min<std::uint64_t>(buffer.size(), size - at),
                static_cast<off_t>(at));
      if (part <= 0) break;
      writer_.write(open.record.contents + at, buffer.data(), static_cast<std::uint64_t>(part));
      open.record.contents_size += static_cast<std::uint64_t>(part);
    }
  }

  void pair_channels() {
    std::vector<Channel> all;
    std::vector<ino_t> supplied;
    for (Open& open : open_) {
      bool channel = open.record.kind == DescriptorKind::pipe ||
                     open.record.kind == DescriptorKind::socket_pair;
      if (channel) all.push_back({&open.record, open.status.st_ino, {}, {}});
      if (open.record.kind == DescriptorKind::supplied) supplied.push_back(open.status.st_ino);
    }
    for (Channel& channel : all)
      if (std::ranges::count(supplied, channel.inode))
        channel.lost = "the kernel's own connection, opened again";
    channels_.capture(all);
    for (const Channel& channel : all) {
      auto open = std::ranges::find_if(
          open_, [&](const Open& each) { return &each.record == channel.record; });
      if (!channel.lost.empty()) lose(*open, channel.lost);
    }
  }

  // "tfd: 8 events: 19 data: 8 pos:0 ino:1d3 sdev:f": what is registered under the number, unless
  // it was closed meanwhile and the number is another's now.
  void add_watches(const Open& open) {
    if (open.record.kind != DescriptorKind::epoll) return;
    for (std::string_view line : split_lines(open.info)) {
      auto words = split_words(line);
      if (words.size() < 8 || words[0] != "tfd:" || !words[7].starts_with("ino:")) continue;
      Watch watch{};
      watch.epoll = open.record.number;
      watch.target = static_cast<std::int32_t>(parse_number(words[1]));
      watch.events = static_cast<std::uint32_t>(parse_number(words[3], 16));
      watch.data = parse_number(words[5], 16);
      auto target = std::ranges::find_if(
          open_, [&](const Open& each) { return each.record.number == watch.target; });
      if (target != open_.end() && target->status.st_ino == parse_number(words[7].substr(4), 16))
        metadata_.watches.push_back(watch);
    }
  }

  pid_t pid_;
  const InnerRoot& root_;
  Metadata& metadata_;
  Writer& writer_;
  std::vector<std::string>& lost_;
  Channels channels_;
  std::vector<Open> open_;
};

}  // namespace

void capture_descriptors(const Tracee& tracee, const InnerRoot& root, Metadata& metadata,
                         Writer& writer, std::vector<std::string>& lost) {
  Capture(tracee, root, metadata, writer, lost).run();
}

}  // namespace sandbox::image
