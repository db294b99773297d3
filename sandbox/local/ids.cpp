#include "sandbox/local/ids.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <string>
#include <system_error>

#include "sandbox/local/descriptors.hpp"

namespace sandbox::local {

namespace {

int check(long result) { return result == -1 ? errno : 0; }

void require(long result, const std::string& what) {
  if (result == -1) throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

std::optional<uid_t> workspace_owner(const std::filesystem::path& workspace) {
  // Code in the sandbox owns it and may have taken the permissions off; the next kernel could then
  // not enter it, to give them back.
  fchmodat(AT_FDCWD, workspace.c_str(), 0700, 0);
  if (geteuid() != 0) return std::nullopt;
  Fd directory(open(workspace.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  require(directory.get(), workspace.string());
  struct stat status {};
  require(fstat(directory.get(), &status), workspace.string());
  if (status.st_uid >= kFirstId && status.st_uid - kFirstId < kIdCount) return status.st_uid;
  uid_t random = 0;
  require(getrandom(&random, sizeof random, 0), "random id");
  uid_t id = kFirstId + random % kIdCount;
  // EINVAL: root of a user namespace that has no such id, as in many containers.
  std::string advice = " (not possible here? Run pykeep as an ordinary user)";
  require(fchown(directory.get(), id, id),
          "give " + workspace.string() + " to user " + std::to_string(id) + advice);
  require(fchmod(directory.get(), 0700), workspace.string());
  return id;
}

Fd hold_id(uid_t id) {
  // An abstract socket name: there is nothing to clean up after a crash.
  Fd holder(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  require(holder.get(), "socket");
  std::string name = "pykeep/uid/" + std::to_string(id);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(holder.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return holder;
  if (errno != EADDRINUSE) require(-1, "hold the sandbox's user id");
  throw StartError("another sandbox runs on this workspace (user id " + std::to_string(id) +
                   "). Close it first.");
}

int become(uid_t id) {
  if (int error = check(syscall(SYS_setgroups, 0, nullptr))) return error;
  for (int capability = 0; prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) == 0; ++capability) {
  }
  if (int error = check(syscall(SYS_setresgid, id, id, id))) return error;
  return check(syscall(SYS_setresuid, id, id, id));
}

}  // namespace sandbox::local
