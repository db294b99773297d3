#include "sandbox/pandastack/guest.hpp"

#include <spdlog/spdlog.h>

#include <cstdio>
#include <ctime>

#include "embedded/guest_package.hpp"
#include "embedded/guest_scripts.hpp"
#include "embedded/kernel_package.hpp"
#include "sandbox/bounded_text.hpp"
#include "sandbox/pandastack/persist.hpp"
#include "sandbox/sandbox.hpp"

namespace sandbox::pandastack {

namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

constexpr auto kStartLimit = 60s;
constexpr auto kInstallLimit = 300s;
constexpr auto kScriptLimit = 60s;
constexpr int kMissing = 42;  // set_up.py
constexpr std::size_t kShown = 500;

// A command may come to be run twice, one after the other or at once.
constexpr const char* kTake = R"(
import contextlib, json, os, sys
try:
    given = json.load(open(sys.argv[1]))
except FileNotFoundError:
    sys.exit(0)
try:
    exec(given["script"])
finally:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(sys.argv[1])
)";

// Everything that is ours in a guest, by its path below the package's directory.
std::vector<std::pair<std::string, std::string_view>> package_files() {
  std::vector<std::pair<std::string, std::string_view>> files;
  auto add = [&files](const std::string& directory, const std::vector<embedded::File>& from) {
    for (const embedded::File& file : from)
      files.emplace_back(directory + std::string(file.name), file.text);
  };
  add("pykeep_kernel/", embedded::kernel_package());
  add("pykeep_guest/", embedded::guest_package());
  add("scripts/", embedded::guest_scripts());
  return files;
}

// FNV-1a: tells versions apart.
std::string package_directory() {
  std::uint64_t hash = 0xcbf29ce484222325;
  auto add = [&](std::string_view text) {
    for (unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;
  };
  for (const auto& [name, text] : package_files()) add(name), add(text);
  char hex[17];
  snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(hash));
  return std::string("/opt/pykeep/") + hex;
}

std::string set_up_script() {
  for (const embedded::File& file : embedded::guest_scripts())
    if (file.name == "set_up.py") return std::string(file.text);
  return {};
}

std::string limited(std::chrono::seconds limit, const std::string& command) {
  return "timeout -k 5 " + std::to_string(limit.count()) + " " + command;
}

Error failed(const std::string& what, const ExecResult& result) {
  std::string said = result.standard_error.empty() ? result.standard_output : result.standard_error;
  return Error(Failure::malformed, Outcome::unknown,
               what + " failed in the guest with exit code " + std::to_string(result.exit_code) +
                   ": " + readable_end(said, kShown));
}

}  // namespace

Guest::Guest(std::shared_ptr<Client> client, Vm vm, std::shared_ptr<CarrierKind> kind)
    : client_(std::move(client)), vm_(std::move(vm)), carrier_kind_(std::move(kind)) {
  if (vm_.package.empty()) vm_.package = package_directory();
  carrier_ = make_carrier(*client_, vm_, *carrier_kind_);
}

std::string Guest::start_command() const {
  return limited(kStartLimit,
                 "python3 -I " + shell_word(vm_.package + "/pykeep_guest/main.py") + " start");
}

// One upload and one command: all of it is in one file, which takes itself apart.
awaitable<ExecResult> Guest::put_in_place(
    const std::vector<std::pair<std::string, std::string>>& environment, bool with_packages,
    bool and_start) {
  json::object given, files, variables;
  if (with_packages)
    for (const auto& [name, text] : package_files()) files[name] = text;
  for (const auto& [name, value] : environment) variables[name] = value;
  given["package"] = vm_.package;
  given["files"] = std::move(files);
  given["environment"] = std::move(variables);
  given["secret"] = vm_.secret;
  given["time"] = static_cast<std::int64_t>(std::time(nullptr));
  given["script"] = set_up_script();
  std::string path = "/opt/pykeep/set-up-" + random_hex(8) + ".json";
  std::string text = json::serialize(given);
  co_await client_->put_file(vm_.id, path, std::move(text));
  std::string command =
      limited(kStartLimit, "python3 -I -c " + shell_word(kTake) + " " + shell_word(path));
  if (and_start) command += " && " + start_command();
  co_return co_await client_->exec(vm_.id, std::move(command), 2 * kStartLimit);
}

awaitable<RelayState> Guest::set_up(std::vector<std::pair<std::string, std::string>> environment,
                                    bool is_new) {
  vm_.secret = random_hex(32);
  if (is_new) vm_.package = package_directory();
  std::function<awaitable<ExecResult>()> put = [&] {
    return put_in_place(environment, is_new, true);
  };
  ExecResult result = co_await persist(put, is_passing_at_first);
  if (!is_new && result.exit_code == kMissing) {  // a restore that lost the disk
    vm_.package = package_directory();
    put = [&] { return put_in_place(environment, true, true); };
    result = co_await persist(put, is_passing_at_first);
  }
  co_return co_await started(std::move(result));
}

awaitable<std::optional<SandboxInfo>> Guest::look() {
  auto is_gone = [](const SandboxInfo& info) {
    return info.status == "deleted" || info.status == "failed" || info.status == "stopping";
  };
  try {
    SandboxInfo info = co_await client_->get(vm_.id);
    if (is_gone(info)) co_return std::nullopt;
    co_return info;
  } catch (const Error& failure) {
    if (failure.status != 404) throw;
  }
  auto all = co_await client_->list();
  for (SandboxInfo& each : all)
    if (each.id == vm_.id && !is_gone(each)) co_return std::move(each);
  co_return std::nullopt;
}

awaitable<void> Guest::install() {
  vm_.package = package_directory();
  vm_.secret = random_hex(32);
  std::vector<std::pair<std::string, std::string>> none;
  std::function<awaitable<ExecResult>()> put = [&] { return put_in_place(none, true, false); };
  ExecResult result = co_await persist(put, is_passing_at_first);
  if (result.exit_code != 0) throw failed("the installation of our files", result);
}

awaitable<RelayState> Guest::start() {
  std::function<awaitable<ExecResult>()> run = [this] {
    return client_->exec(vm_.id, start_command(), kStartLimit + 5s);
  };
  ExecResult result = co_await persist(run);
  co_return co_await started(std::move(result));
}

awaitable<RelayState> Guest::started(ExecResult result) {
  Started report = read_started(result.standard_output);
  if (report.problem == "no_ipython" && !report.remedy.empty()) {
    spdlog::info("the guest lacks IPython; installing it there: {}", report.remedy);
    std::string install = limited(kInstallLimit, "sh -c " + shell_word(report.remedy));
    ExecResult installed = co_await client_->exec(vm_.id, std::move(install), kInstallLimit + 5s);
    if (installed.exit_code != 0)
      throw StartError("The sandbox's Python has no IPython, and it cannot be installed there: " +
                       readable_end(installed.standard_error, kShown) +
                       ". Choose another template with --pandastack-template.");
    std::string command = start_command();
    result = co_await client_->exec(vm_.id, std::move(command), kStartLimit + 5s);
    report = read_started(result.standard_output);
  }
  if (report.state) {
    vm_.port = report.state->port;
    co_return std::move(*report.state);
  }
  bool by_python = report.problem == "no_ipython" || report.problem == "old_python" ||
                   report.problem == "no_python";
  if (by_python)
    throw StartError("The sandbox's template cannot run a kernel: " + report.message +
                     ". Choose another one with --pandastack-template.");
  throw failed("the start of the relay", result);
}

awaitable<std::string> Guest::script(std::string name, json::object argument, std::uint64_t cap) {
  std::string command =
      limited(kScriptLimit, "python3 -I " + shell_word(vm_.package + "/scripts/" + name) + " " +
                                shell_word(json::serialize(argument)));
  std::function<awaitable<ExecResult>()> run = [&] {
    return client_->exec(vm_.id, command, kScriptLimit + 5s, cap);
  };
  ExecResult result = co_await persist(run, is_passing_soon);
  if (result.exit_code != 0) throw failed(name, result);
  co_return std::move(result.standard_output);
}

awaitable<std::unique_ptr<RelayAnswer>> Guest::ask(std::string method, std::string target,
                                                   std::string body,
                                                   std::chrono::milliseconds limit) {
  return carrier_->ask(std::move(method), std::move(target), std::move(body), limit);
}

awaitable<std::optional<RelayState>> Guest::mend() {
  std::optional<Error> failure;
  try {
    co_return co_await start();
  } catch (const StartError& refused) {
    failure.emplace(Failure::malformed, Outcome::unknown, refused.what());
  } catch (const Error& failed) {
    failure.emplace(failed);
  }
  bool stands = failure->status == 409;  // it sleeps, or has failed
  if (stands || failure->status == 404) {
    auto info = co_await look();
    if (!info) co_return std::nullopt;
  }
  if (stands) co_await client_->wake(vm_.id);
  throw std::move(*failure);
}

}  // namespace sandbox::pandastack
