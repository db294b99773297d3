#include "sandbox/pandastack/guest_spill.hpp"

#include <algorithm>
#include <cerrno>

#include "sandbox/bounded_text.hpp"
#include "sandbox/pandastack/vm_records.hpp"

namespace sandbox::pandastack {

awaitable<void> GuestSpill::append(const Execution&, std::string bytes) {
  std::size_t room = std::min<std::uint64_t>(bytes.size(), cap_ - text_.size());
  text_.append(bytes, 0, room);
  cut_ = cut_ || room < bytes.size();
  co_return;
}

awaitable<std::string> GuestSpill::finish(const Execution& execution) {
  std::string text = std::exchange(text_, std::string());
  if (std::exchange(cut_, false))
    text += "\n[cut here: such a file holds at most " + size_text(cap_) + "]\n";
  std::string path = "outputs/" + std::to_string(execution.number) + ".txt";
  try {
    bool taken = true;
    try {
      co_await files_.stat(path);
    } catch (const FileError& absent) {
      if (absent.error != ENOENT) throw;
      taken = false;
    }
    if (taken) path = "outputs/" + std::to_string(execution.number) + "-" + random_hex(3) + ".txt";
    co_await files_.write(path, std::move(text));
    co_return path;
  } catch (const FileError&) {  // a full disk, or the cell made the path unusable: its own loss
  }
  co_return "";
}

}  // namespace sandbox::pandastack
