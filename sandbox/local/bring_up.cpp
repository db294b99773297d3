#include "sandbox/local/bring_up.hpp"

#include <sys/stat.h>

#include <boost/asio/this_coro.hpp>
#include <system_error>

#include "sandbox/local/bubblewrap.hpp"
#include "sandbox/local/mounts.hpp"

namespace sandbox::local {

namespace asio = boost::asio;
namespace json = boost::json;

namespace {

// The name stays when its loader is replaced: each version lies in a directory of its own.
constexpr const char* kLoader = "/opt/pykeep/kernel/loader";

std::unique_ptr<LocalSandbox> launch_kernel(Setting& setting, const SandboxSpec& spec,
                                            const std::filesystem::path& package,
                                            const std::vector<std::string>& argv,
                                            const Images& images, Origin origin) try {
  std::error_code absent;
  if (!std::filesystem::exists(spec.python.python, absent))
    throw StartError("there is no Python at " + spec.python.python.string() +
                     ": name another interpreter or environment, or make one with `pykeep template "
                     "build`.");
  origin.record.package = package.filename();
  origin.record.python = spec.python.python;
  std::shared_ptr<Process> process = launch(spec, argv, package, images);
  return std::make_unique<LocalSandbox>(setting.executor, setting.pool, setting.freezing, spec,
                                        std::move(process), setting.options, std::move(origin));
} catch (const std::system_error& failure) {
  throw StartError(std::string("the sandbox could not be set up: ") + failure.what());
}

std::uint64_t bytes_on_disk(const Fd& file) {
  struct stat status {};
  constexpr std::uint64_t kBlock = 512;  // of st_blocks: images are sparse
  return fstat(file.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_blocks) * kBlock
                                         : 0;
}

// Waits for the kernel's answer, and closes the sandbox if there is none.
awaitable<void> settle(LocalSandbox& sandbox, awaitable<void> answer) {
  std::exception_ptr failure;
  std::string reason;
  try {
    co_await std::move(answer);
    co_return;
  } catch (const boost::system::system_error&) {
    failure = std::current_exception();
  } catch (const std::runtime_error& problem) {
    reason = problem.what();
  }
  co_await sandbox.close();
  if (failure) std::rethrow_exception(failure);
  throw NotReady(reason);
}

}  // namespace

awaitable<std::unique_ptr<LocalSandbox>> start_cold(Setting& setting, SandboxSpec spec, Cold how,
                                                    Origin origin) {
  // Once there is a sandbox it is closed in any case; cancelled meanwhile, the wait throws.
  co_await asio::this_coro::throw_if_cancelled(false);
  std::vector<std::string> argv;
  if (how.by_loader) argv.assign({kLoader, "boot"});
  argv.push_back(spec.python.python.string());
  argv.push_back("-I");
  argv.push_back(std::string(kKernelPackage) + "/pykeep_kernel/main.py");
  if (how.warm) argv.push_back("--warm");
  Images none;
  auto sandbox = launch_kernel(setting, spec, how.package, argv, none, std::move(origin));
  auto answer = sandbox->ready(setting.options.start_limit);
  co_await settle(*sandbox, std::move(answer));
  co_return std::move(sandbox);
}

awaitable<std::unique_ptr<LocalSandbox>> thaw_image(Setting& setting, SandboxSpec spec, Thawing how,
                                                    Origin origin) {
  co_await asio::this_coro::throw_if_cancelled(false);
  std::vector<std::string> argv;
  argv.assign({kLoader, "thaw"});
  Images images;
  images.descriptors.push_back(how.image.get());
  if (how.base) images.descriptors.push_back(how.base.get());
  images.monotonic = how.monotonic;
  images.boottime = how.boottime;
  images.of_template = bytes_on_disk(how.base ? how.base : how.image);
  origin.record.monotonic_ahead = how.monotonic.count();
  origin.record.boottime_ahead = how.boottime.count();
  auto sandbox = launch_kernel(setting, spec, how.package, argv, images, std::move(origin));
  json::object environment;
  for (const auto& [name, value] : spec.environment) environment[name] = value;
  json::object told;
  told["reason"] = how.reason;
  told["environment"] = std::move(environment);
  auto answer = sandbox->resumed(std::move(told), setting.options.start_limit);
  co_await settle(*sandbox, std::move(answer));
  co_return std::move(sandbox);
}

std::optional<std::string> loaders_words(const std::string& what) {
  constexpr std::string_view kMark = "loader: ";
  std::size_t begin = what.find(kMark);
  if (begin == what.npos) return std::nullopt;
  begin += kMark.size();
  return what.substr(begin, what.find('\n', begin) - begin);
}

std::string with_remedy(const std::string& reason, const SandboxSpec& spec) {
  const std::string python = spec.python.python.string();
  if (reason.find("No module named 'IPython'") != reason.npos)
    return python + " has no IPython, which runs the cells. Install it with `" + python +
           " -m pip install ipython` (Debian, Ubuntu: `sudo apt-get install python3-ipython`), or "
           "make an environment with `pykeep template build`.";
  if (reason.find("bwrap: ") != reason.npos)
    return "cannot start the sandbox: " + explain_bwrap(reason);
  return reason + "\nThe interpreter was " + python +
         ". `pykeep doctor` checks it and the sandbox; nothing was left running.";
}

}  // namespace sandbox::local
