#include "sandbox/local/spill.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "sandbox/bounded_text.hpp"
#include "sandbox/local/beneath.hpp"
#include "sandbox/local/replace_file.hpp"

namespace sandbox::local {

namespace {

constexpr int kNames = 100;

bool write_all(const Fd& file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t size = ::write(file.get(), bytes.data(), bytes.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(size));
  }
  return true;
}

}  // namespace

bool WorkspaceSpill::create(int number) {
  for (int i = 1; i <= kNames; ++i) {
    std::string suffix = i == 1 ? "" : "-full" + (i == 2 ? "" : std::to_string(i));
    std::string path = "outputs/" + std::to_string(number) + suffix + ".txt";
    bool missing = false;
    open_beneath(directory_, path, O_PATH | O_NOFOLLOW, &missing);
    if (!missing) continue;
    replace_file(directory_, path, owner_, from_memory(""));
    // The sandbox may have put a pipe in its place, on which a plain open or write would hang.
    Fd file = open_beneath(directory_, path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
    if (!S_ISREG(status_of(file, path).st_mode)) return false;
    file_ = std::move(file);
    path_ = path;
    return true;
  }
  return false;
}

bool WorkspaceSpill::write(int number, std::string_view bytes) {
  if (!file_ && !create(number)) return false;
  std::size_t room = std::min<std::uint64_t>(bytes.size(), cap_ - written_);
  if (!write_all(file_, bytes.substr(0, room))) return false;
  written_ += room;
  if (room == bytes.size()) return true;
  write_all(file_, "\n[cut here: such a file holds at most " + size_text(cap_) + "]\n");
  return false;
}

awaitable<void> WorkspaceSpill::append(const Execution& execution, std::string bytes) {
  if (stopped_) co_return;
  int number = execution.number;
  auto work = [this, number, &bytes] { return write(number, bytes); };
  try {
    bool more = co_await async::on_pool(pool_, work);
    stopped_ = !more;
  } catch (const std::exception&) {
    stopped_ = true;  // a full disk, or the sandbox made the path unusable: its own loss
  }
}

awaitable<std::string> WorkspaceSpill::finish(const Execution&) {
  file_ = Fd();
  written_ = 0;
  stopped_ = false;
  co_return std::exchange(path_, std::string());
}

}  // namespace sandbox::local
