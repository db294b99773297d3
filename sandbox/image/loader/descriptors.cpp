#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "sandbox/image/loader/thaw.hpp"

namespace sandbox::image::loader {

namespace {

constexpr int kStatusFlags = O_NONBLOCK | O_APPEND;
constexpr int kOpeningFlags = O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC;

char buffer[64 << 10];

class Restorer {
 public:
  explicit Restorer(const Image& image) : image_(image) {}

  void restore(const Descriptor& descriptor) {
    switch (descriptor.kind) {
      case DescriptorKind::supplied:
      case DescriptorKind::duplicate:  // once all else is there
        return;
      case DescriptorKind::file:
        return open_file(descriptor);
      case DescriptorKind::saved_file:
        return make_file(descriptor);
      case DescriptorKind::pipe:
      case DescriptorKind::socket_pair:
        return make_pair(descriptor);
      case DescriptorKind::eventfd:
        return put(descriptor, call(__NR_eventfd2, descriptor.value, descriptor.extra ? 1 : 0));
      case DescriptorKind::epoll:
        return put(descriptor, call(__NR_epoll_create1, 0));
      case DescriptorKind::timerfd:
        return make_timer(descriptor);
      case DescriptorKind::signalfd:
        return put(descriptor, call(__NR_signalfd4, -1, &descriptor.value, 8, 0));
      case DescriptorKind::lost:
        return lose(descriptor);
    }
    fail("damaged (a descriptor)");
  }

  // A number that the process believes to be something else must not be given to the next file it
  // opens. O_PATH: whatever is done to it fails.
  void lose(const Descriptor& descriptor) { put(descriptor, call(__NR_open, "/", O_PATH)); }

  void duplicate(const Descriptor& descriptor) {
    if (descriptor.kind != DescriptorKind::duplicate) return;
    check(call(__NR_dup3, descriptor.other, descriptor.number, descriptor.flags & O_CLOEXEC),
          "cannot duplicate a descriptor");
  }

 private:
  // Moves a new descriptor to its number. Its own number may be one that another one is to have:
  // then that one is still to come, since numbers are handed out from the lowest.
  void put(const Descriptor& descriptor, long opened) {
    auto fd = static_cast<int>(check(opened, "cannot make a descriptor"));
    if (fd == descriptor.number) {
      call(__NR_fcntl, fd, F_SETFD, descriptor.flags & O_CLOEXEC ? FD_CLOEXEC : 0);
    } else {
      check(call(__NR_dup3, fd, descriptor.number, descriptor.flags & O_CLOEXEC),
            "cannot move a descriptor");
      call(__NR_close, fd);
    }
    if (!(descriptor.flags & O_PATH) && descriptor.kind != DescriptorKind::lost)
      call(__NR_fcntl, descriptor.number, F_SETFL, descriptor.flags & kStatusFlags);
  }

  void open_file(const Descriptor& descriptor) {
    const char* path = image_.string(descriptor.path);
    long fd =
        check(call(__NR_open, path, descriptor.flags & ~kOpeningFlags, 0), "cannot open", path);
    call(__NR_lseek, fd, descriptor.position, SEEK_SET);
    put(descriptor, fd);
  }

  // In a temporary file system, or without a name: its contents are in the image.
  void make_file(const Descriptor& descriptor) {
    const char* path = image_.string(descriptor.path);
    long fd = -1;
    if (*path) fd = call(__NR_open, path, O_RDWR | O_CREAT, descriptor.mode);
    if (fd < 0) fd = call(__NR_open, "/tmp", O_RDWR | O_TMPFILE, descriptor.mode);
    if (fd < 0) fd = call(__NR_open, "/dev/shm", O_RDWR | O_TMPFILE, descriptor.mode);
    check(fd, "cannot make a temporary file");
    for (std::uint64_t done = 0; done < descriptor.contents_size;) {
      std::uint64_t part = descriptor.contents_size - done;
      if (part > sizeof buffer) part = sizeof buffer;
      read_fully(image_.fd, buffer, part, descriptor.contents + done, "the image");
      if (call(__NR_pwrite64, fd, buffer, part, done) != static_cast<long>(part))
        fail("cannot write a temporary file");
      done += part;
    }
    check(call(__NR_ftruncate, fd, descriptor.full_size), "cannot size a temporary file");
    call(__NR_fchmod, fd, descriptor.mode);
    fd = reopen(fd, descriptor.flags);
    call(__NR_lseek, fd, descriptor.position, SEEK_SET);
    put(descriptor, fd);
  }

  // With the access that the process had.
  static long reopen(long fd, std::uint32_t flags) {
    char path[] = "/proc/self/fd/0000000";
    char* digit = path + sizeof path - 2;
    for (long rest = fd; rest > 0; rest /= 10) *digit-- = static_cast<char>('0' + rest % 10);
    char* number = digit + 1;
    char* to = path + sizeof "/proc/self/fd/" - 1;
    while ((*to++ = *number++)) {
    }
    long opened = call(__NR_open, path, flags & ~kOpeningFlags, 0);
    if (opened < 0) return fd;
    call(__NR_close, fd);
    return opened;
  }

  void fill(int fd, const Descriptor& reader) {
    for (std::uint64_t done = 0; done < reader.contents_size;) {
      std::uint64_t part = reader.contents_size - done;
      if (part > sizeof buffer) part = sizeof buffer;
      read_fully(image_.fd, buffer, part, reader.contents + done, "the image");
      for (std::uint64_t sent = 0; sent < part;) {
        long written = call(__NR_write, fd, buffer + sent, part - sent);
        check(written, "cannot fill a pipe or socket");
        sent += static_cast<std::uint64_t>(written);
      }
      done += part;
    }
  }

  const Descriptor* find(int number) {
    const Descriptor* all = image_.begin<Descriptor>(kDescriptors);
    for (std::uint64_t index = 0; index < image_.count(kDescriptors); ++index)
      if (all[index].number == number) return all + index;
    return nullptr;
  }

  // Both ends, when the first of them comes by.
  void make_pair(const Descriptor& descriptor) {
    if (descriptor.other >= 0 && descriptor.other < descriptor.number) return;
    const Descriptor* other = descriptor.other >= 0 ? find(descriptor.other) : nullptr;
    int ends[2];
    bool is_pipe = descriptor.kind == DescriptorKind::pipe;
    if (is_pipe)
      check(call(__NR_pipe2, ends, O_NONBLOCK), "cannot make a pipe");
    else
      check(call(__NR_socketpair, AF_UNIX, descriptor.value | SOCK_NONBLOCK, 0, ends),
            "cannot make a socket pair");
    for (int& end : ends) {
      long lifted = check(call(__NR_fcntl, end, F_DUPFD, image_.floor), "cannot make a pipe");
      call(__NR_close, end);
      end = static_cast<int>(lifted);
    }
    bool writes = is_pipe && (descriptor.flags & O_ACCMODE) == O_WRONLY;
    int own = ends[writes ? 1 : 0], others = ends[writes ? 0 : 1];
    if (is_pipe && descriptor.value)
      call(__NR_fcntl, own, F_SETPIPE_SZ, descriptor.value);  // its capacity
    fill(others, descriptor);  // what `own` has not read yet; a writer has nothing
    if (other) {
      fill(own, *other);
      put(*other, others);
    } else {
      call(__NR_close, others);
    }
    put(descriptor, own);
  }

  void make_timer(const Descriptor& descriptor) {
    long fd = call(__NR_timerfd_create, descriptor.value, 0);
    std::uint64_t timer[4];
    memcpy(timer, descriptor.timer, sizeof timer);
    if (descriptor.extra) timer[2] = 0, timer[3] = 1;  // expired and not read: expires at once
    if (fd >= 0 && (timer[2] || timer[3])) call(__NR_timerfd_settime, fd, 0, timer, nullptr);
    put(descriptor, fd);
  }

  const Image& image_;
};

void watch(const Watch& each) {
  struct {
    std::uint32_t events;
    std::uint64_t data;
  } __attribute__((packed)) event{each.events, each.data};
  constexpr int kAdd = 1;
  call(__NR_epoll_ctl, each.epoll, kAdd, each.target, &event);
}

}  // namespace

void restore_descriptors(const Image& image) {
  Restorer restorer(image);
  const Descriptor* all = image.begin<Descriptor>(kDescriptors);
  std::uint64_t count = image.count(kDescriptors);
  bool open[4] = {};
  for (std::uint64_t index = 0; index < count; ++index)
    if (all[index].number >= 0 && all[index].number < 4) open[all[index].number] = true;
  for (std::uint64_t index = 0; index < count; ++index) restorer.restore(all[index]);
  for (std::uint64_t index = 0; index < count; ++index) restorer.duplicate(all[index]);
  for (int number = 0; number < 4; ++number)
    if (!open[number]) call(__NR_close, number);  // the process had closed it
  const Watch* watches = image.begin<Watch>(kWatches);
  for (std::uint64_t index = 0; index < image.count(kWatches); ++index) watch(watches[index]);
}

}  // namespace sandbox::image::loader
