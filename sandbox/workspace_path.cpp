#include "sandbox/workspace_path.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <string_view>
#include <system_error>

#include "sandbox/files.hpp"
#include "schemas/utf8.hpp"

namespace sandbox {

namespace {

constexpr std::size_t kShown = 100;  // of a path that may have any length

const char* explanation(int error) {
  switch (error) {
    case ENOENT:
      return "there is no such file in the workspace";
    case ELOOP:
      return "it is, or its path contains, a symbolic link, and links in the workspace are not "
             "followed from outside; copy the file to a plain name first";
    case EXDEV:
      return "it leads out of the workspace";
    case ENOTDIR:
      return "part of the path is a file, not a directory";
    case EISDIR:
      return "it is a directory";
    case ENOSPC:
    case EDQUOT:
      return "the disk is full; nothing was changed: what was at this path before is still there. "
             "Delete files and try again";
    case EFBIG:
      return "the file is too large for this file system; nothing was changed";
    case EAGAIN:
      return "the workspace changes too quickly at this path; try again";
    default:
      return nullptr;
  }
}

}  // namespace

void fail(const std::string& path, int error) {
  const char* known = explanation(error);
  throw FileError(printable(path) + ": " +
                      (known ? std::string(known) : std::generic_category().message(error)),
                  error);
}

std::string file_path(const std::string& path) {
  if (path.ends_with('/'))
    throw FileError(printable(path) +
                    ": it names a directory; add the file's name. Nothing was changed");
  return workspace_path(path);
}

std::string printable(const std::string& name) {
  std::string result;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t length = schemas::utf8_sequence(std::string_view(name).substr(at));
    if (length == 0) {
      char escaped[8];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned char>(name[at++]));
      result += escaped;
    } else {
      result.append(name, at, length);
      at += length;
    }
  }
  return result;
}

std::string workspace_path(const std::string& path) {
  if (path.find('\0') != path.npos) throw FileError("a file name cannot contain a NUL byte");
  std::string rest = path;
  if (rest.starts_with('/')) {
    std::string_view inside(kWorkspacePath);
    bool below =
        rest.starts_with(inside) && (rest.size() == inside.size() || rest[inside.size()] == '/');
    if (!below)
      throw FileError(printable(path.substr(0, kShown)) +
                      ": only paths below /workspace can be reached; give it relative "
                      "to that");
    rest.erase(0, inside.size());
  }
  std::string result;
  for (std::size_t at = 0; at <= rest.size();) {
    std::size_t end = std::min(rest.find('/', at), rest.size());
    std::string name = rest.substr(at, end - at);
    at = end + 1;
    if (name.empty() || name == ".") continue;
    if (name == "..")
      throw FileError(printable(path.substr(0, kShown)) + ": \"..\" is not allowed in a path");
    if (name.size() > NAME_MAX)
      throw FileError(printable(path.substr(0, kShown)) +
                      "...: a file name has at most 255 bytes, this one " +
                      std::to_string(name.size()));
    result += (result.empty() ? "" : "/") + name;
  }
  if (result.size() >= PATH_MAX) throw FileError("a path has at most 4,095 bytes");
  return result.empty() ? "." : result;
}

}  // namespace sandbox
