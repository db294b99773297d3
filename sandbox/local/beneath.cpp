#include "sandbox/local/beneath.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace sandbox::local {

namespace {

// openat2 answers EAGAIN when something was renamed while it looked.
constexpr int kRenameRetries = 64;

}  // namespace

Fd open_beneath(int root, const std::string& path, int flags, bool* missing) {
  open_how how{};
  // A FIFO in the workspace must not block.
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC);
  if (!(flags & O_PATH)) how.flags |= O_NONBLOCK | O_NOCTTY;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  for (int attempt = 0;; ++attempt) {
    Fd fd(static_cast<int>(syscall(SYS_openat2, root, path.c_str(), &how, sizeof how)));
    if (fd) return fd;
    bool again = (errno == EAGAIN && attempt < kRenameRetries) || errno == EINTR;
    if (again) continue;
    if (missing && errno == ENOENT) {
      *missing = true;
      return {};
    }
    fail(path, errno);
  }
}

struct stat status_of(const Fd& fd, const std::string& path) {
  struct stat status {};
  if (fstat(fd.get(), &status) == -1) fail(path, errno);
  return status;
}

}  // namespace sandbox::local
