#include "sandbox/local/descriptors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace sandbox::local {

namespace {

int checked(int result, const char* what) {
  if (result == -1) throw std::system_error(errno, std::generic_category(), what);
  return result;
}

Fd raised(int fd) {
  Fd low(fd);
  Fd high(fcntl(low.get(), F_DUPFD_CLOEXEC, kAboveProgram));
  if (!high)
    throw std::system_error(errno, std::generic_category(),
                            "the limit of open files is too low for a sandbox: start pykeep after "
                            "`ulimit -n 1024`");
  return high;
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.release();
  }
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

Pipe make_pipe() {
  int ends[2];
  checked(pipe2(ends, O_CLOEXEC), "pipe");
  Fd read(ends[0]), write(ends[1]);
  Pipe pipe;
  pipe.read = raised(read.release());
  pipe.write = raised(write.release());
  return pipe;
}

std::pair<Fd, Fd> make_stream_pair() {
  int ends[2];
  checked(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), "socket pair");
  Fd first(ends[0]), second(ends[1]);
  return {raised(first.release()), raised(second.release())};
}

Fd open_null() { return raised(checked(open("/dev/null", O_RDWR | O_CLOEXEC), "/dev/null")); }

Fd memory_file(const char* name, std::string_view bytes) {
  Fd file = raised(checked(memfd_create(name, MFD_CLOEXEC), "memory file"));
  for (std::size_t done = 0; done < bytes.size();) {
    ssize_t size =
        pwrite(file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(done));
    if (size == -1 && errno == EINTR) continue;
    checked(size > 0 ? 0 : -1, "memory file");
    done += static_cast<std::size_t>(size);
  }
  return file;
}

void set_nonblocking(const Fd& fd) {
  int flags = checked(fcntl(fd.get(), F_GETFL), "descriptor flags");
  checked(fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK), "descriptor flags");
}

}  // namespace sandbox::local
