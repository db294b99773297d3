#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json.hpp>
#include <cerrno>
#include <charconv>
#include <chrono>

#include "sandbox/local/bubblewrap.hpp"
#include "sandbox/local/descriptors.hpp"
#include "sandbox/local/environment.hpp"
#include "sandbox/local/ids.hpp"
#include "sandbox/local/procfs.hpp"
#include "sandbox/local/sandboxed_process.hpp"
#include "sandbox/local/seccomp.hpp"

namespace sandbox::local {

namespace {

namespace json = boost::json;

constexpr std::chrono::seconds kNamespacesLimit{10};  // a loaded machine takes 100 ms at most
constexpr int kOomScore = 500;
constexpr int kNiceness = 5;  // where there is no cpu control group

// The program's and bwrap's sides of every connection; ours are in Started.
struct Ends {
  Fd null, out, err, link, status, block;
  std::vector<Fd> files;  // from kArguments on, but for status and block
};

std::string oom_score() {
  int own = 0;
  std::string text = read_proc_file("/proc/self/oom_score_adj");
  std::from_chars(text.data(), text.data() + text.size(), own);
  return std::to_string(std::max(own, kOomScore));  // lowering it would need a capability
}

// In the order of the program's numbers, then of BwrapDescriptor, then of the images.
std::vector<int> numbered(const Ends& ends, const Images& images) {
  std::vector<int> all = {ends.null.get(),     ends.out.get(),    ends.err.get(),  ends.link.get(),
                          ends.files[0].get(), ends.status.get(), ends.block.get()};
  for (std::size_t index = 1; index < ends.files.size(); ++index)
    all.push_back(ends.files[index].get());
  all.insert(all.end(), images.descriptors.begin(), images.descriptors.end());
  return all;
}

// The host's pid of pid 1 inside, from bwrap's status; nullopt when bwrap ended without one.
std::optional<pid_t> read_child_pid(const Fd& status) {
  auto deadline = std::chrono::steady_clock::now() + kNamespacesLimit;
  std::string text;
  while (text.find('\n') == text.npos && text.size() < 4096) {
    auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd wait{status.get(), POLLIN, 0};
    int ready = left.count() > 0 ? poll(&wait, 1, static_cast<int>(left.count())) : 0;
    if (ready == -1 && errno == EINTR) continue;
    if (ready <= 0) break;
    char buffer[1024];
    ssize_t size = read(status.get(), buffer, sizeof buffer);
    if (size == -1 && errno == EINTR) continue;
    if (size <= 0) break;
    text.append(buffer, static_cast<std::size_t>(size));
  }
  boost::system::error_code malformed;
  json::value parsed = json::parse(text.substr(0, text.find('\n')), malformed);
  const json::object* object = malformed ? nullptr : parsed.if_object();
  const json::value* pid = object ? object->if_contains("child-pid") : nullptr;
  if (!pid || !pid->is_int64()) return std::nullopt;
  return static_cast<pid_t>(pid->as_int64());
}

std::string last_words(const Fd& err) {
  char buffer[4096];
  ssize_t size = read(err.get(), buffer, sizeof buffer);
  return size > 0 ? std::string(buffer, static_cast<std::size_t>(size)) : std::string();
}

std::string clock_offsets(const Images& images) {
  auto line = [](const char* clock, std::chrono::nanoseconds ahead) {
    auto seconds = std::chrono::floor<std::chrono::seconds>(ahead);
    return std::string(clock) + " " + std::to_string(seconds.count()) + " " +
           std::to_string((ahead - seconds).count()) + "\n";
  };
  if (images.monotonic.count() == 0 && images.boottime.count() == 0) return {};
  return line("monotonic", images.monotonic) + line("boottime", images.boottime);
}

Plan make_plan(const std::vector<std::string>& argv, const SandboxSpec& spec, const View& view,
               const Cgroup& cgroup, const Ends& ends, const Images& images) {
  Plan plan;
  plan.arguments = {find_bubblewrap(), "--args", std::to_string(kArguments), "--"};
  plan.arguments.insert(plan.arguments.end(), argv.begin(), argv.end());
  plan.descriptors = numbered(ends, images);
  std::size_t number = plan.descriptors.size() - images.descriptors.size();
  for (; number < plan.descriptors.size(); ++number)
    plan.arguments.push_back(std::to_string(number));
  plan.clock_offsets = clock_offsets(images);
  plan.limits = resource_limits(spec.limits, images.of_template);
  plan.oom_score = oom_score();
  plan.niceness = cgroup.limits(Controller::cpu) ? 0 : kNiceness;
  plan.user = workspace_owner(spec.workspace);
  if (plan.user) plan.staged = view.binds;
  return plan;
}

Ends connect(Started& started, const SandboxSpec& spec, const View& view, Fd& block) {
  Ends ends;
  Pipe out = make_pipe(), err = make_pipe(), status_pipe = make_pipe(), block_pipe = make_pipe();
  auto [ours, theirs] = make_stream_pair();
  started.link = std::move(ours);
  started.out = std::move(out.read);
  started.err = std::move(err.read);
  for (const Fd* end : {&started.link, &started.out, &started.err}) set_nonblocking(*end);
  started.status = std::move(status_pipe.read);
  block = std::move(block_pipe.write);

  ends.null = open_null();
  ends.out = std::move(out.write);
  ends.err = std::move(err.write);
  ends.link = std::move(theirs);
  ends.status = std::move(status_pipe.write);
  ends.block = std::move(block_pipe.read);
  auto environment = program_environment(spec);
  BwrapInput input{view, environment, spec.limits, spec.network, geteuid() == 0};
  bool counted = started.cgroup->limits(Controller::memory);
  ends.files.push_back(memory_file("arguments", bwrap_options(input)));
  ends.files.push_back(memory_file("calls", allowed_calls(counted)));
  ends.files.push_back(memory_file("requests", denied_requests()));
  for (const GeneratedFile& file : view.files)
    ends.files.push_back(memory_file("file", file.contents));
  return ends;
}

// Once the namespaces exist and before the program does.
void enter(Started& started, pid_t init) {
  struct stat status {};
  std::string path = "/proc/" + std::to_string(init) + "/ns/pid";
  if (stat(path.c_str(), &status) == -1)
    throw StartError("cannot look at the sandbox through " + path + ": " +
                     std::generic_category().message(errno) + ". Is /proc mounted with hidepid?");
  started.pid_namespace = status.st_ino;
  started.init = hold_member(init, started.pid_namespace);
  if (started.cgroup->limits(Controller::pids)) return;
  if (int error = limit_processes(init, started.limits.processes))
    throw StartError("cannot limit the sandbox's processes: " +
                     std::generic_category().message(error));
}

}  // namespace

std::unique_ptr<Process> launch(const SandboxSpec& spec, const std::vector<std::string>& argv,
                                const std::filesystem::path& kernel_package,
                                const Images& images) try {
  bury_the_dead();
  View view = visible_in(spec, kernel_package);
  Started started;
  started.limits = spec.limits;
  started.cgroup = std::make_unique<Cgroup>(spec.name, spec.limits);
  Fd block;
  Ends ends = connect(started, spec, view, block);
  Plan plan = make_plan(argv, spec, view, *started.cgroup, ends, images);
  if (plan.user) started.held_id = hold_id(*plan.user);

  Cgroup& cgroup = *started.cgroup;
  started.outer = spawn(plan, [&](pid_t pid) { cgroup.add(pid); });
  ends = Ends();
  try {
    std::optional<pid_t> init = read_child_pid(started.status);
    if (!init)
      throw StartError("cannot start the sandbox: " + explain_bwrap(last_words(started.err)));
    enter(started, *init);
  } catch (...) {
    make_process(std::move(started));  // and its destructor ends what was started
    throw;
  }
  (void)!write(block.get(), "!", 1);
  return make_process(std::move(started));
} catch (const std::system_error& error) {
  throw StartError(std::string("cannot start the sandbox: ") + error.what());
}

}  // namespace sandbox::local
