// A session's kernel: how it comes up, ends, is put on disk and comes back.

#include <fcntl.h>
#include <linux/fs.h>
#include <spdlog/spdlog.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "mcp/error.hpp"
#include "sandbox/remove_tree.hpp"
#include "sandbox/state_files.hpp"
#include "tools/session.hpp"

namespace tools {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

constexpr milliseconds kCheckpointLimit{10'000};

milliseconds since(steady_clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
}

std::string not_carried(const std::vector<std::string>& lost) {
  return lost.empty() ? "" : " Not carried over: " + list_of(lost) + ".";
}

// Swaps two directories in one step.
void exchange(const std::filesystem::path& one, const std::filesystem::path& other) {
  if (renameat2(AT_FDCWD, one.c_str(), AT_FDCWD, other.c_str(), RENAME_EXCHANGE) != 0)
    sandbox::fail_on("replace", one, errno);
}

}  // namespace

// Called when the kernel has gone by itself.
void Session::lose_kernel(std::string because) {
  if (services_.observer) services_.observer->kernel_ended(handle(), because);
  lost_because_ = std::move(because);
  knows_last_execution_ = true;
  sandbox_.reset();
}

awaitable<void> Session::end_kernel(std::string cause) {
  auto ending = std::move(sandbox_);
  if (!ending) co_return;
  if (services_.observer) services_.observer->kernel_ended(handle(), cause);
  co_await ending->close();
}

// What a return to the image loses, if the last execution is known.
std::string Session::lost_executions(std::optional<int> last) const {
  int first = images_.record()->execution + 1;
  std::string text = "execution " + std::to_string(first);
  if (!last)
    text = "executions after " + std::to_string(first - 1) + " are lost";
  else if (*last < first)
    text = "no execution is lost";
  else if (*last == first)
    text += " is lost";
  else
    text = "executions " + std::to_string(first) + " to " + std::to_string(*last) + " are lost";
  return text + ", and files in /workspace are not rewound";
}

awaitable<void> Session::ensure_kernel(std::vector<std::string>& announcements) {
  if (sandbox_ && !sandbox_->alive()) lose_kernel("ended between two executions");
  if (!sandbox_) services_.admit();
  announcements = std::exchange(pending_, {});
  if (sandbox_) co_return;
  starting_ = true;
  std::string news;
  try {
    news = co_await bring_up();
  } catch (...) {
    starting_ = false;
    pending_ = std::move(announcements);
    throw;
  }
  starting_ = false;
  if (!news.empty()) announcements.push_back(std::move(news));
}

awaitable<std::string> Session::bring_up() {
  auto start = steady_clock::now();
  std::string not_restored, news;
  if (!images_.record() && lease_.record.generation > 0) news = co_await adopt();
  if (images_.record()) {
    try {
      news = co_await wake();
    } catch (const sandbox::ThawError& failure) {
      not_restored = failure.what();
    }
  }
  if (!sandbox_) news = co_await start_anew(std::move(not_restored));
  spdlog::info("session {}: kernel {} is up ({})", handle(), lease_.record.generation,
               sandbox_->description());
  if (std::string why = sandbox_->cold_because(); !why.empty())
    spdlog::info("session {}: started without an image: {}", handle(), why);
  lost_because_.clear();
  not_hibernated_.clear();
  if (services_.observer)
    services_.observer->kernel_started(lease_.record.principal, handle(), sandbox_->how_started(),
                                       since(start));
  co_return news;
}

// A kernel that was never ended, but let go of: with the server that ran it, or out of its reach.
awaitable<std::string> Session::adopt() {
  sandbox_ = co_await services_.backend.adopt(spec_);
  if (!sandbox_) co_return "";
  last_execution_ = sandbox_->last_execution();
  lease_.record.ended.reset();
  co_await images_.save();
  co_return "The kernel went on while no server was connected to it: variables are kept.";
}

// Throws ThawError, with the image as it was.
awaitable<std::string> Session::wake() {
  co_await images_.check();
  sandbox_ = co_await services_.backend.thaw(images_.path(), spec_, sandbox::Thaw::wake);
  const sandbox::ImageRecord image = *images_.record();
  std::string news;
  if (images_.current()) {
    news = "The kernel was restored from disk as it was " + after_execution(image.execution) +
           ": variables are kept.";
  } else {
    auto last = knows_last_execution_ ? std::optional(last_execution_) : std::nullopt;
    news = "The kernel was restored to its state " + after_execution(image.execution) +
           ", since the last one " + lost_because_ + ": " + lost_executions(last) + ".";
    ++lease_.record.generation;
  }
  news += not_carried(image.lost);
  last_execution_ = image.execution;
  background_ = image.background.value_or("");
  lease_.record.ended.reset();
  co_await images_.outdate();  // before the first cell that makes it so
  co_return news;
}

awaitable<std::string> Session::start_anew(std::string not_restored) {
  sandbox_ = co_await services_.backend.start(spec_);
  ++lease_.record.generation;
  last_execution_ = 0;
  lease_.record.ended.reset();
  co_await images_.drop();
  std::string gone = sandbox_->kept_files()
                         ? " Variables from before are gone; files in /workspace are kept."
                         : " Variables and files from before are gone.";
  if (!not_restored.empty() && !not_restored.ends_with('.')) not_restored += '.';
  if (!not_restored.empty())
    co_return "A new kernel was started: the last one could not be restored, because " +
        not_restored + gone;
  if (lost_because_.empty()) co_return "";
  co_return "A new kernel was started: the last one " + lost_because_ + "." + gone;
}

awaitable<void> Session::stop_kernel(std::string reason) {
  auto turn = co_await turn_.take();
  if (!sandbox_) co_return;
  knows_last_execution_ = true;
  lost_because_ = reason;
  lease_.record.ended = reason;
  co_await end_kernel(std::move(reason));
  co_await images_.save();
}

awaitable<void> Session::restart(std::string reason) {
  runs_.stop(Execution::Stop::interrupt);
  auto turn = co_await turn_.take();
  bool had_variables = sandbox_ || images_.record() || !lost_because_.empty();
  if (had_variables) lost_because_ = reason;
  co_await end_kernel(std::move(reason));
  co_await images_.drop();
}

awaitable<bool> Session::hibernate(milliseconds limit, bool allow_lost) {
  auto turn = co_await turn_.take();
  if (!has_kernel()) co_return false;
  hibernating_ = true;
  sandbox::FreezeOptions options;
  options.keep_running = false;
  options.allow_lost = allow_lost;
  options.limit = limit;
  not_hibernated_.clear();
  try {
    co_await images_.take(*sandbox_, last_execution_, options);
  } catch (const sandbox::FreezeError& refused) {
    not_hibernated_ = refused.what();
    spdlog::info("session {} stays: {}", handle(), not_hibernated_);
  } catch (const boost::system::system_error&) {  // nobody wants it any more
    hibernating_ = false;
    throw;
  } catch (const std::exception& defect) {
    not_hibernated_ = "an internal error of the server; its log says more";
    spdlog::error("session {} cannot be put on disk: {}", handle(), defect.what());
  }
  hibernating_ = false;
  if (!not_hibernated_.empty()) co_return false;
  co_await end_kernel("it was put on disk");
  co_return true;
}

// One that fails costs nothing but its time; the next one comes after a while.
awaitable<void> Session::checkpoint() {
  auto start = steady_clock::now();
  sandbox::FreezeOptions options;
  options.limit = kCheckpointLimit;
  options.given_up = no_checkpoint_;
  try {
    co_await images_.take(*sandbox_, last_execution_, options);
  } catch (const sandbox::FreezeError& refused) {
    spdlog::info("session {}: no checkpoint: {}", handle(), refused.what());
  } catch (const boost::system::system_error&) {  // the session is being closed
  } catch (const std::exception& defect) {
    spdlog::error("session {}: no checkpoint: {}", handle(), defect.what());
  }
  images_.tried(steady_clock::now() - start);
}

awaitable<async::Turn::Hold> Session::turn(milliseconds limit) {
  auto taking = turn_.take();
  auto turn = co_await async::within(limit, std::move(taking));
  if (!turn)
    throw mcp::ToolError(
        "Session " + handle() + " is busy" +
        (active_ ? " with execution " + active_->execution->id : std::string()) +
        ". Wait for it with wait_execution, or stop it with interrupt_execution, and try again.");
  if (closing_) throw mcp::ToolError("The session was closed.");
  co_return std::move(*turn);
}

awaitable<std::shared_ptr<sandbox::Sandbox>> Session::kernel() {
  std::vector<std::string> announcements;
  co_await ensure_kernel(announcements);
  pending_ = std::move(announcements);  // for the next result
  co_return sandbox_;
}

awaitable<void> Session::become(std::filesystem::path image, sandbox::Thaw why, int execution,
                                std::function<void(const std::filesystem::path&)> fill) {
  if (sandbox_ && !sandbox_->alive()) lose_kernel("ended between two executions");
  if (!sandbox_) services_.admit();
  auto start = steady_clock::now();
  auto workspace = lease_.workspace(), beside = lease_.directory / "workspace.new";
  auto clear = [&beside] { sandbox::remove_tree(beside); };
  auto fill_beside = [this, &beside, &fill] {
    sandbox::remove_tree(beside);
    sandbox::make_private_directory(beside);
    sandbox::SandboxSpec spec = spec_;
    spec.workspace = beside;
    // It gives the directory to whom the files are to belong to.
    if (!services_.backend.capabilities().files_in_sandbox) services_.backend.files(spec);
    fill(beside);
  };
  std::unique_ptr<sandbox::Sandbox> restored;
  std::exception_ptr failure;
  starting_ = true;
  try {
    co_await async::on_pool(services_.pool, fill_beside);
    // From here on a crash must not find the new files beside the memory of the old ones.
    if (!images_.current()) co_await images_.drop();
    // The kernel that runs keeps its own directory, whatever that is called.
    exchange(workspace, beside);
    try {
      restored = co_await services_.backend.thaw(std::move(image), spec_, why);
    } catch (...) {
      exchange(workspace, beside);
      throw;
    }
  } catch (...) {
    failure = std::current_exception();
  }
  starting_ = false;
  if (!failure) {
    co_await end_kernel("the session went back to a snapshot");
    sandbox_ = std::move(restored);
    cold_files_.reset();
    ++lease_.record.generation;
    last_execution_ = execution;
    lost_because_.clear();
    lease_.record.ended.reset();
    co_await images_.drop();
    if (services_.observer)
      services_.observer->kernel_started(lease_.record.principal, handle(), sandbox_->how_started(),
                                         since(start));
  }
  co_await async::on_pool(services_.pool, clear);
  if (failure) std::rethrow_exception(failure);
}

}  // namespace tools
