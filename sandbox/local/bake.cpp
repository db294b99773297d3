#include "sandbox/local/bake.hpp"

#include <stdlib.h>

#include <boost/asio/this_coro.hpp>
#include <system_error>

#include "sandbox/image/freezer.hpp"
#include "sandbox/local/kernel_package.hpp"
#include "sandbox/local/template_images.hpp"

namespace sandbox::local {

namespace asio = boost::asio;
namespace fs = std::filesystem;

namespace {

// What a session does first, with as little else as possible: the pages that it makes its own are
// prepared ahead in every later thaw, and each of them is memory of every session.
constexpr const char* kTypicalCell = "1+1";
constexpr int kTypicalCells = 2;

// A workspace that goes when this does.
class Scratch {
 public:
  explicit Scratch(const fs::path& root) {
    std::string name = (root / "bake-XXXXXX").string();
    if (!mkdtemp(name.data()))
      throw FreezeError(root.string() +
                        " cannot be written: " + std::generic_category().message(errno));
    path_ = name;
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    std::error_code failed;
    fs::remove_all(path_, failed);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

class Unfinished {
 public:
  explicit Unfinished(fs::path path) : path_(std::move(path)) {}
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;
  ~Unfinished() {
    std::error_code absent;
    fs::remove(path_, absent);
  }

 private:
  fs::path path_;
};

void check(const Setting& setting) {
  if (setting.ending) throw FreezeError("it was given up, since the server ends");
}

// Starts a kernel that warms itself up, and takes its image.
awaitable<void> take(Setting& setting, SandboxSpec spec, fs::path package, fs::path image) {
  Cold how;
  how.package = package;
  how.warm = true;
  auto sandbox = co_await start_cold(setting, spec, std::move(how), Origin());
  pid_t kernel = sandbox->process().program();
  std::exception_ptr failure;
  try {
    auto freeze = [&] {
      image::FreezeRequest request;
      request.keep_running = false;
      request.given_up = &setting.ending;
      return image::freeze(kernel, image, request);
    };
    co_await async::on_pool(setting.baking.pool(), freeze);
  } catch (...) {
    failure = std::current_exception();
  }
  co_await sandbox->close();
  if (failure) std::rethrow_exception(failure);
}

awaitable<void> try_and_train(Setting& setting, LocalSandbox& sandbox, fs::path image) {
  for (int cell = 0; cell < kTypicalCells; ++cell) {
    Execution execution(setting.executor, "bake", kTypicalCell);
    execution.timeout = setting.options.start_limit;
    check(setting);
    co_await sandbox.run(execution);
    if (execution.status != Execution::Status::ok)
      throw FreezeError("a kernel thawed from the new image does not compute: " + execution.cause);
  }
  pid_t kernel = sandbox.process().program();
  auto train = [&] { image::train(kernel, image); };
  check(setting);
  co_await async::on_pool(setting.baking.pool(), train);
}

awaitable<void> finish(Setting& setting, SandboxSpec spec, fs::path package, fs::path image) {
  Thawing how;
  how.package = package;
  how.image = open_own(image);
  how.reason = "template";
  auto sandbox = co_await thaw_image(setting, spec, std::move(how), Origin());
  std::exception_ptr failure;
  try {
    co_await try_and_train(setting, *sandbox, image);
  } catch (...) {
    failure = std::current_exception();
  }
  co_await sandbox->close();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

awaitable<fs::path> bake_in(Setting& setting, Template python) {
  co_await asio::this_coro::throw_if_cancelled(false);
  const fs::path& root = setting.options.kernel_root;
  auto install = [&] { return install_kernel_package(root); };
  fs::path package = co_await async::on_pool(setting.pool, install);
  auto hold = [&] { return hold_image_place(python, root); };
  Fd held = co_await async::on_pool(setting.pool, hold);
  if (!held) co_return fs::path();
  SandboxSpec spec;
  spec.name = "bake";
  spec.python = std::move(python);
  ImagePlace place = image_place(spec, package, root);
  Scratch scratch(place.final.parent_path());
  spec.workspace = scratch.path();
  Unfinished unfinished(place.aside);
  try {
    check(setting);
    co_await take(setting, spec, package, place.aside);
    check(setting);
    co_await finish(setting, spec, package, place.aside);
  } catch (const NotReady& problem) {
    throw FreezeError(with_remedy(problem.what(), spec));
  } catch (const ThawError& problem) {
    throw FreezeError(problem.what());
  }
  publish_image(place);
  co_return place.final;
}

awaitable<fs::path> bake(asio::any_io_executor executor, asio::thread_pool& pool,
                         BackendOptions options, Template python) {
  Setting setting{executor, pool, std::move(options)};
  fs::path image = co_await bake_in(setting, std::move(python));
  if (image.empty())
    throw FreezeError("another pykeep is making the image of this template right now");
  co_return image;
}

}  // namespace sandbox::local
