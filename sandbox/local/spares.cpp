#include "sandbox/local/spares.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <stdlib.h>
#include <sys/file.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <system_error>

namespace sandbox::local {

namespace asio = boost::asio;
namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kLook{30};

bool are_equal(const SandboxSpec& one, const SandboxSpec& other) {
  return one.python.python == other.python.python && one.python.visible == other.python.visible &&
         one.limits == other.limits && one.network == other.network &&
         one.environment == other.environment;
}

Fd lock(const fs::path& directory) {
  Fd fd(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd && flock(fd.get(), LOCK_EX | LOCK_NB) == -1) return {};
  return fd;
}

fs::path root_of(const BackendOptions& options) { return options.kernel_root / "spares"; }

}  // namespace

Spares::Spares(asio::any_io_executor executor, asio::thread_pool& pool,
               const BackendOptions& options, Make make)
    : pool_(pool), options_(options), make_(std::move(make)), changed_(executor) {}

// What servers that were killed have left.
void Spares::sweep() const {
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(root_of(options_), failed))
    if (Fd held = lock(entry.path())) fs::remove_all(entry.path(), failed);
}

std::optional<Spares::Spare> Spares::place(SandboxSpec spec) const {
  std::error_code failed;
  fs::create_directories(root_of(options_), failed);
  std::string name = (root_of(options_) / "XXXXXX").string();
  if (!mkdtemp(name.data())) return std::nullopt;
  Spare spare{.spec = std::move(spec), .held = lock(name)};
  spare.spec.name = "spare-" + fs::path(name).filename().string();
  std::ranges::transform(spare.spec.name, spare.spec.name.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  spare.spec.workspace = name;
  return spare;
}

bool Spares::is_wanted(const SandboxSpec& spec) const {
  auto same = [&](const SandboxSpec& other) { return are_equal(spec, other); };
  auto count =
      std::ranges::count_if(ready_, same, &Spare::spec) + std::ranges::count_if(making_, same);
  return ready_.size() + making_.size() < options_.spares &&
         static_cast<std::size_t>(count) < options_.spares;
}

awaitable<void> Spares::fill(SandboxSpec spec) {
  co_await asio::this_coro::throw_if_cancelled(false);
  auto sweeping = [this] { sweep(); };
  if (!std::exchange(swept_, true)) co_await async::on_pool(pool_, sweeping);
  auto placing = [this, &spec] { return place(spec); };
  while (is_wanted(spec)) {
    auto making = making_.insert(making_.end(), spec);
    std::optional<Spare> spare = co_await async::on_pool(pool_, placing);
    if (spare) co_await bring_up(*spare);
    making_.erase(making);
    bool made = spare && spare->sandbox;
    if (made) ready_.push_back(std::move(*spare));
    changed_.notify();
    if (made) continue;
    if (spare) co_await remove(*spare);
    co_return;
  }
}

// Leaves it without a sandbox where there cannot be one.
awaitable<void> Spares::bring_up(Spare& spare) {
  try {
    auto sandbox = co_await make_(spare.spec);
    spare.sandbox = std::move(sandbox);
  } catch (const std::exception& problem) {
    spdlog::info("no sandbox ahead of time: {}", problem.what());
  }
  spare.made = std::chrono::steady_clock::now();
}

awaitable<std::unique_ptr<LocalSandbox>> Spares::take(SandboxSpec spec) {
  auto same = [&](const SandboxSpec& other) { return are_equal(spec, other); };
  for (;;) {
    auto found = std::ranges::find_if(ready_, same, &Spare::spec);
    if (found == ready_.end()) {
      bool coming = std::ranges::any_of(making_, same);
      if (!coming) co_return nullptr;
      co_await changed_.wait();
      continue;
    }
    if (!found->sandbox->alive()) {
      Spare dead = std::move(*found);
      ready_.erase(found);
      co_await end(std::move(dead));
      continue;
    }
    std::error_code failed;  // not an empty one: the session has files already
    fs::rename(found->spec.workspace, spec.workspace, failed);
    if (failed) co_return nullptr;
    auto sandbox = std::move(found->sandbox);
    ready_.erase(found);
    sandbox->move_to(spec.workspace);
    co_return std::move(sandbox);
  }
}

awaitable<void> Spares::remove(const Spare& spare) {
  auto removing = [&spare] {
    std::error_code failed;
    fs::remove_all(spare.spec.workspace, failed);
  };
  co_await async::on_pool(pool_, removing);
}

awaitable<void> Spares::end(Spare spare) {
  co_await asio::this_coro::throw_if_cancelled(false);
  co_await spare.sandbox->close();
  co_await remove(spare);
}

awaitable<void> Spares::expire() {
  for (;;) {
    co_await async::sleep_for(std::min<std::chrono::milliseconds>(kLook, options_.spare_life));
    auto oldest = std::chrono::steady_clock::now() - options_.spare_life;
    while (!ready_.empty() && ready_.front().made < oldest) {
      Spare spare = std::move(ready_.front());
      ready_.pop_front();
      co_await end(std::move(spare));
    }
  }
}

awaitable<void> Spares::close() {
  while (!ready_.empty()) {
    Spare spare = std::move(ready_.front());
    ready_.pop_front();
    co_await end(std::move(spare));
  }
}

}  // namespace sandbox::local
