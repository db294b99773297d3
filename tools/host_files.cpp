#include "tools/host_files.hpp"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "mcp/error.hpp"
#include "schemas/codec.hpp"
#include "tools/text.hpp"

namespace tools {

namespace fs = std::filesystem;
using mcp::ToolError;

namespace {

constexpr const char* kNothing = " Nothing was uploaded.";

// Opens without following anything out of the root, however the path is written.
int open_beneath(const fs::path& root, const fs::path& relative) {
  int directory = open(root.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return -1;
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;  // a FIFO must not block us
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
  int fd = static_cast<int>(syscall(SYS_openat2, directory, relative.c_str(), &how, sizeof how));
  int error = errno;
  close(directory);
  errno = error;
  return fd;
}

std::string names_of(const std::vector<fs::path>& roots) {
  std::string names;
  for (const fs::path& root : roots) names += (names.empty() ? "" : ", ") + one_line(root.string());
  return names;
}

}  // namespace

HostFile::~HostFile() {
  if (fd_ >= 0) close(fd_);
}

HostFile open_host_file(const std::vector<fs::path>& roots, const std::string& path) {
  if (path.empty() || path.find('\0') != path.npos)
    throw ToolError(std::string("arguments.path: not a path.") + kNothing);
  if (roots.empty())
    throw ToolError(
        std::string("Files of the server's machine cannot be read: the operator gave no "
                    "--upload-root. Send the content as text or base64.") +
        kNothing);
  std::string shown = "\"" + one_line(schemas::clipped(path)) + "\"";
  int error = ENOENT;
  for (const fs::path& root : roots) {
    fs::path relative = fs::path(path);
    if (relative.is_absolute()) relative = relative.lexically_normal().lexically_relative(root);
    if (relative.empty() || *relative.begin() == "..") {
      if (error == ENOENT) error = EXDEV;
      continue;
    }
    HostFile file(open_beneath(root, relative));
    if (file.get() < 0) {
      error = errno;
      continue;
    }
    struct stat info;
    if (fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
      throw ToolError(shown + " is not a regular file." + kNothing);
    return file;
  }
  if (error == EXDEV || error == ELOOP)
    throw ToolError(shown + " is outside the directories that files may be uploaded from (" +
                    names_of(roots) + ")." + kNothing +
                    " The operator can add one with --upload-root.");
  throw ToolError("Cannot open " + shown + ": " + std::strerror(error) + ". Looked below " +
                  names_of(roots) + "." + kNothing);
}

}  // namespace tools
