#include "sandbox/local/backend.hpp"

#include <spdlog/spdlog.h>
#include <time.h>

#include <boost/asio/this_coro.hpp>
#include <set>

#include "async/task_group.hpp"
#include "sandbox/local/bake.hpp"
#include "sandbox/local/bring_up.hpp"
#include "sandbox/local/kernel_package.hpp"
#include "sandbox/local/probe.hpp"
#include "sandbox/local/spares.hpp"
#include "sandbox/local/template_images.hpp"

namespace sandbox::local {

namespace asio = boost::asio;
namespace fs = std::filesystem;

namespace {

std::chrono::nanoseconds now(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

class LocalBackend : public Backend {
 public:
  LocalBackend(asio::any_io_executor executor, asio::thread_pool& pool, BackendOptions options)
      : setting_{executor, pool, std::move(options)},
        spares_(executor, pool, setting_.options,
                [this](SandboxSpec spec) { return thaw_template(std::move(spec)); }),
        tasks_(executor) {}

  awaitable<std::unique_ptr<Sandbox>> start(SandboxSpec spec) override;
  awaitable<std::unique_ptr<Sandbox>> thaw(fs::path image, SandboxSpec spec, Thaw reason) override;
  void prepare(SandboxSpec spec) override;
  void wind_down() override;
  awaitable<void> stop() override;
  std::unique_ptr<Files> files(const SandboxSpec& spec) override {
    in_use_.insert(spec.workspace);
    return std::make_unique<WorkspaceFiles>(spec.workspace, setting_.pool);
  }
  Capabilities capabilities() const override;
  awaitable<std::vector<Layer>> check() override;

 private:
  awaitable<fs::path> package();
  awaitable<std::unique_ptr<LocalSandbox>> from_template(SandboxSpec spec, std::string& why_not);
  awaitable<std::unique_ptr<LocalSandbox>> thaw_template(SandboxSpec spec);
  awaitable<std::unique_ptr<LocalSandbox>> cold(SandboxSpec spec, std::string because);
  awaitable<void> bake_quietly(SandboxSpec spec);
  void check_once(const SandboxSpec& spec, const TemplateImage& image);
  awaitable<void> check_image(SandboxSpec spec, fs::path image, std::shared_ptr<Fd> file);

  Setting setting_;
  Spares spares_;
  std::set<fs::path> in_use_;  // workspaces that files() was asked for: they keep their inode
  std::set<image::ImageId> checked_;  // template images, or about to be
  std::string damaged_;               // what the last check of one found
  std::set<fs::path> baked_;          // interpreters: an image is made once a server, at most
  bool started_ = false;
  bool expiring_ = false;
  async::TaskGroup tasks_;
};

awaitable<fs::path> LocalBackend::package() {
  auto install = [this] { return install_kernel_package(setting_.options.kernel_root); };
  co_return co_await async::on_pool(setting_.pool, install);
}

awaitable<std::unique_ptr<Sandbox>> LocalBackend::start(SandboxSpec spec) {
  started_ = true;
  if (!in_use_.contains(spec.workspace)) {
    auto spare = co_await spares_.take(spec);
    bool refill = setting_.options.refill_spares && !setting_.ending;
    if (spare && refill) tasks_.spawn(spares_.fill(spec));
    if (spare) co_return std::move(spare);
  }
  std::string because;
  auto thawed = co_await from_template(spec, because);
  if (thawed) co_return std::move(thawed);
  auto sandbox = co_await cold(spec, std::move(because));
  bool can_have_one = setting_.options.images && !setting_.ending && never_from_image(spec).empty();
  if (can_have_one && baked_.insert(spec.python.python).second)
    tasks_.spawn(bake_quietly(std::move(spec)));
  co_return std::move(sandbox);
}

// Null, and why, where a cold start is the way to go on.
awaitable<std::unique_ptr<LocalSandbox>> LocalBackend::from_template(SandboxSpec spec,
                                                                     std::string& why_not) {
  if (!setting_.options.images) co_return nullptr;
  why_not = never_from_image(spec);
  if (!why_not.empty()) co_return nullptr;
  Thawing how;
  how.package = co_await package();
  auto look = [&] { return find_template_image(spec, how.package, setting_.options.kernel_root); };
  ImageSearch search = co_await async::on_pool(setting_.pool, look);
  why_not = std::move(search.why_not);
  if (!search.image && !damaged_.empty()) why_not = damaged_;
  if (!search.image) co_return nullptr;
  check_once(spec, *search.image);
  how.reason = "template";
  Origin origin;
  origin.how = Start::template_image;
  origin.base = duplicate(search.image->file);
  how.image = std::move(search.image->file);
  try {
    co_return co_await thaw_image(setting_, spec, std::move(how), std::move(origin));
  } catch (const NotReady& problem) {
    why_not = "the template's image could not be thawed: " +
              loaders_words(problem.what()).value_or(problem.what());
  }
  co_return nullptr;
}

awaitable<std::unique_ptr<LocalSandbox>> LocalBackend::thaw_template(SandboxSpec spec) {
  std::string why_not;
  auto sandbox = co_await from_template(std::move(spec), why_not);
  co_return std::move(sandbox);
}

awaitable<std::unique_ptr<LocalSandbox>> LocalBackend::cold(SandboxSpec spec, std::string because) {
  Cold how;
  how.package = co_await package();
  how.by_loader = setting_.options.images;
  Origin origin;
  origin.cold_because = because;
  if (!how.by_loader) origin.cannot_freeze = "images are turned off in this server";
  std::string problem;
  try {
    co_return co_await start_cold(setting_, spec, how, std::move(origin));
  } catch (const NotReady& failure) {
    problem = failure.what();
  }
  auto loaders = how.by_loader ? loaders_words(problem) : std::nullopt;
  if (!loaders) throw StartError(with_remedy(problem, spec));
  how.by_loader = false;
  Origin without;
  without.cold_because = without.cannot_freeze = "images do not work here: " + *loaders;
  try {
    co_return co_await start_cold(setting_, spec, how, std::move(without));
  } catch (const NotReady& failure) {
    problem = failure.what();
  }
  throw StartError(with_remedy(problem, spec));
}

awaitable<void> LocalBackend::bake_quietly(SandboxSpec spec) {
  try {
    auto image = co_await bake_in(setting_, spec.python);
    if (image.empty()) co_return;
    spdlog::info("made the image that sessions start from: {}", image.string());
    if (setting_.options.refill_spares) co_await spares_.fill(spec);
  } catch (const boost::system::system_error&) {  // wind_down(), stop()
  } catch (const std::exception& failure) {
    if (setting_.ending) co_return;  // the next server makes it
    spdlog::warn("no image could be made of {}, sessions start cold: {}", spec.python.name,
                 failure.what());
  }
}

// Damaged pages would be every later session's. Looked at once a server, after the first session
// has come up: it takes some 50 ms.
void LocalBackend::check_once(const SandboxSpec& spec, const TemplateImage& image) {
  if (!checked_.insert(image.info.id).second) return;
  tasks_.spawn(check_image(spec, image.path, std::make_shared<Fd>(duplicate(image.file))));
}

awaitable<void> LocalBackend::check_image(SandboxSpec spec, fs::path image,
                                          std::shared_ptr<Fd> file) {
  constexpr std::chrono::milliseconds kAfter{1000};
  auto look = [&]() -> std::string {
    try {
      image::verify("/proc/self/fd/" + std::to_string(file->get()));
    } catch (const ThawError& damage) {
      std::error_code gone;
      fs::remove(image, gone);
      return damage.what();
    }
    return {};
  };
  std::string damage;
  try {
    co_await async::sleep_for(kAfter);
    damage = co_await async::on_pool(setting_.pool, look);
  } catch (const boost::system::system_error&) {  // stop()
  }
  if (damage.empty()) co_return;
  damaged_ = "the template's image was deleted: " + damage;
  spdlog::error("{}. Sessions that came from {} may be broken: close them.", damaged_,
                image.string());
  co_await spares_.close();
  if (baked_.insert(spec.python.python).second) co_await bake_quietly(std::move(spec));
}

awaitable<std::unique_ptr<Sandbox>> LocalBackend::thaw(fs::path image, SandboxSpec spec,
                                                       Thaw reason) {
  if (!setting_.options.images) throw ThawError("Images are turned off in this server.");
  Thawing how;
  how.reason = name_of(reason);
  Origin origin;
  origin.how = Start::image;
  auto open = [&] {
    origin.record = read_record(image);
    if (origin.record.python != spec.python.python)
      throw ThawError("The image was made with another Python, " + origin.record.python +
                      ", and its session asks for " + spec.python.python.string() + ".");
    how.package = setting_.options.kernel_root / origin.record.package;
    std::error_code absent;
    if (origin.record.package.find('/') != std::string::npos ||
        !fs::exists(how.package / "loader", absent))
      throw ThawError("The version of pykeep that made the image is gone from this machine.");
    how.image = open_own(memory_of(image));
    image::ImageInfo info = image::verify(memory_of(image));
    if (info.base) how.base = open_own(base_of(image));
    if (info.base) origin.base = duplicate(how.base);
    if (auto why_not = image::why_not_here(info, same_inside(spec.python)))
      throw ThawError(*why_not);
    using std::chrono::nanoseconds;
    const ImageRecord& record = origin.record;
    nanoseconds monotonic(record.monotonic_ahead), boottime(record.boottime_ahead);
    how.monotonic = std::max(nanoseconds(0), info.monotonic + monotonic - now(CLOCK_MONOTONIC));
    how.boottime = std::max(nanoseconds(0), info.boottime + boottime - now(CLOCK_BOOTTIME));
  };
  co_await async::on_pool(setting_.pool, open);
  try {
    co_return co_await thaw_image(setting_, spec, std::move(how), std::move(origin));
  } catch (const NotReady& problem) {
    auto words = loaders_words(problem.what());
    throw ThawError(words ? *words : with_remedy(problem.what(), spec));
  }
}

void LocalBackend::prepare(SandboxSpec spec) {
  const BackendOptions& options = setting_.options;
  bool wanted = options.images && options.spares > 0 && !setting_.ending;
  if (!wanted || (started_ && !options.refill_spares)) return;
  if (!std::exchange(expiring_, true)) tasks_.spawn(spares_.expire());
  tasks_.spawn(spares_.fill(std::move(spec)));
}

void LocalBackend::wind_down() {
  setting_.ending = true;
  tasks_.cancel();
}

awaitable<void> LocalBackend::stop() {
  co_await asio::this_coro::throw_if_cancelled(false);
  wind_down();
  co_await tasks_.join();
  co_await spares_.close();
}

Capabilities LocalBackend::capabilities() const {
  Capabilities can;
  can.network_isolation = true;
  if (setting_.options.images) can.snapshot = Capabilities::Snapshot::exact;
  return can;
}

// On this thread, since the pool must not launch (process.hpp), and for most of a second: whoever
// serves asks seldom.
awaitable<std::vector<Layer>> LocalBackend::check() {
  auto make_scratch = [this] {
    std::error_code failed;
    return fs::create_directories(setting_.options.kernel_root, failed);
  };
  co_await async::on_pool(setting_.pool, make_scratch);
  std::vector<Layer> layers = probe_layers(setting_.options.kernel_root);
  co_return layers;
}

}  // namespace

std::unique_ptr<Backend> make_backend(asio::any_io_executor executor, asio::thread_pool& pool,
                                      BackendOptions options) {
  return std::make_unique<LocalBackend>(executor, pool, std::move(options));
}

}  // namespace sandbox::local
