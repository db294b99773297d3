#include <chrono>
#include <system_error>

#include "sandbox/image/freezer.hpp"
#include "sandbox/local/image_record.hpp"
#include "sandbox/local/local_sandbox.hpp"

// How a session's kernel becomes an image on disk.
namespace sandbox::local {

namespace asio = boost::asio;
namespace fs = std::filesystem;

namespace {

using Clock = std::chrono::steady_clock;

// A server that ends has no time for the disk: FreezeOptions::limit.
constexpr std::chrono::seconds kTimeToSync{2};

// `aside` is complete afterwards, or gone.
FreezeReport write_image(pid_t kernel, const fs::path& aside, const Origin& origin,
                         const FreezeOptions& options, Clock::time_point deadline) try {
  if (Clock::now() >= deadline) throw FreezeError("other kernels were being frozen until then");
  fs::create_directory(aside);
  fs::permissions(aside, fs::perms::owner_all);
  image::FreezeRequest request;
  if (origin.base) {
    link_or_copy(origin.base, base_of(aside));
    request.base = base_of(aside);
  }
  request.keep_running = options.keep_running;
  request.allow_lost = options.allow_lost;
  request.limit = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  request.given_up = options.given_up.get();
  request.sync = options.limit >= kTimeToSync;
  write_record(aside, origin.record, request.sync);
  image::Frozen frozen = image::freeze(kernel, memory_of(aside), request);
  return {frozen.bytes, frozen.pause, std::move(frozen.lost)};
} catch (const fs::filesystem_error& failure) {
  throw FreezeError(failure.path1().string() + " cannot be written: " + failure.code().message());
}

FreezeReport write_or_remove(pid_t kernel, const fs::path& image, const Origin& origin,
                             const FreezeOptions& options, Clock::time_point deadline) {
  fs::path aside = image;
  aside += ".new";
  std::error_code failed;
  fs::remove_all(aside, failed);  // of a server that was killed meanwhile
  try {
    FreezeReport report = write_image(kernel, aside, origin, options, deadline);
    fs::rename(aside, image, failed);
    if (failed) throw FreezeError(image.string() + " cannot be written: " + failed.message());
    return report;
  } catch (...) {
    fs::remove_all(aside, failed);
    throw;
  }
}

}  // namespace

awaitable<FreezeReport> LocalSandbox::freeze(fs::path image, FreezeOptions options) {
  co_await asio::this_coro::throw_if_cancelled(false);
  if (!origin_.cannot_freeze.empty())
    throw FreezeError("this kernel's memory cannot be saved: " + origin_.cannot_freeze);
  if (sampled_->running)
    throw FreezeError("a cell is running: its memory can be saved once the cell has ended");
  pid_t kernel = kernel_.alive() ? process_->program() : 0;
  if (kernel == 0) throw FreezeError("the kernel has ended: there is nothing to save");
  auto deadline = Clock::now() + options.limit;
  auto work = [&] { return write_or_remove(kernel, image, origin_, options, deadline); };
  FreezeReport report = co_await async::on_pool(freezing_.pool(), work);
  co_return report;
}

}  // namespace sandbox::local
