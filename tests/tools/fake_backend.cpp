#include "tests/tools/fake_backend.hpp"

#include <spdlog/spdlog.h>
#include <stdlib.h>

#include <fstream>
#include <thread>

#include "sandbox/local/workspace.hpp"
#include "schemas/codec.hpp"

namespace fake {

namespace asio = boost::asio;
namespace fs = std::filesystem;
namespace json = boost::json;
using Status = sandbox::Execution::Status;
using Stop = sandbox::Execution::Stop;

namespace {

// The files of the fake: an in-memory stand-in that knows writing, reading and listing by name.
class Files final : public sandbox::Files {
 public:
  explicit Files(fs::path directory) : directory_(std::move(directory)) {}

  awaitable<sandbox::FileInfo> stat(std::string path) override {
    std::error_code absent;
    sandbox::FileInfo info;
    info.path = path;
    info.size = fs::file_size(directory_ / path, absent);
    if (absent) throw sandbox::FileError("no file " + path);
    co_return info;
  }
  awaitable<sandbox::Listing> list(std::string, int, std::size_t) override {
    sandbox::Listing listing;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      sandbox::FileInfo info;
      info.path = entry.path().filename();
      info.size = entry.is_regular_file() ? entry.file_size() : 0;
      listing.entries.push_back(std::move(info));
    }
    co_return listing;
  }
  awaitable<std::string> read(std::string path, std::uint64_t, std::size_t size) override {
    FILE* file = fopen((directory_ / path).c_str(), "rb");
    if (!file) throw sandbox::FileError("no file " + path);
    std::string bytes(size, '\0');
    bytes.resize(fread(bytes.data(), 1, size, file));
    fclose(file);
    co_return bytes;
  }
  awaitable<sandbox::FileInfo> write(std::string path, std::string bytes) override {
    FILE* file = fopen((directory_ / path).c_str(), "wb");
    if (!file) throw sandbox::FileError("cannot write " + path);
    fwrite(bytes.data(), 1, bytes.size(), file);
    fclose(file);
    co_return co_await stat(path);
  }
  awaitable<sandbox::FileInfo> copy_in(std::string path, int host_fd, std::uint64_t cap) override {
    std::string bytes(cap, '\0');
    auto count = ::read(host_fd, bytes.data(), bytes.size());
    bytes.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    co_return co_await write(path, std::move(bytes));
  }
  awaitable<std::unique_ptr<sandbox::FileWriter>> create(std::string) override {
    throw sandbox::FileError("the fake writes whole files only");
  }
  awaitable<std::unique_ptr<sandbox::FileReader>> open(std::string) override {
    throw sandbox::FileError("the fake reads whole files only");
  }
  awaitable<std::uint64_t> used(std::uint64_t) override { co_return 0; }
  std::string host_path(const std::string& path) const override { return directory_ / path; }

 private:
  fs::path directory_;
};

void print(sandbox::Execution& execution, std::string text) {
  execution.bytes_out += text.size();
  sandbox::Output output;
  output.what = sandbox::Text{sandbox::StreamName::out, std::move(text)};
  execution.outputs.push_back(std::move(output));
}

void raise(sandbox::Execution& execution) {
  sandbox::PythonError error;
  error.name = "ValueError";
  error.value = "as asked";
  error.traceback = {"Cell In[1], line 1", "ValueError: as asked"};
  sandbox::Output output;
  output.what = std::move(error);
  execution.outputs.push_back(std::move(output));
  execution.status = Status::raised;
}

}  // namespace

// ---- the sandbox

Sandbox::Sandbox(Backend& backend, sandbox::SandboxSpec spec)
    : backend_(backend), template_(spec.python.name), files_(backend.files(spec)) {
  backend_.sandboxes.push_back(this);
}

Sandbox::~Sandbox() { std::erase(backend_.sandboxes, this); }

awaitable<void> Sandbox::run(sandbox::Execution& execution) {
  backend_.cells.push_back(execution.code);
  execution.started = std::chrono::steady_clock::now();
  execution.status = Status::running;
  execution.number = ++number_;
  std::string word = execution.code.substr(0, execution.code.find(' '));
  std::string rest = execution.code.substr(std::min(execution.code.size(), word.size() + 1));
  if (word == "print") print(execution, rest + "\n");
  if (word == "talk") print(execution, "step\n");
  if (word == "set") variables_[rest.substr(0, rest.find(' '))] = rest.substr(rest.find(' ') + 1);
  if (word == "get") print(execution, variables_.contains(rest) ? variables_[rest] : "NameError");
  if (word == "sleep" || word == "talk") {
    auto limit = execution.timeout;
    if (execution.stop_requested() == Stop::none) co_await execution.stop_changed.wait(limit);
    bool asked = execution.stop_requested() != Stop::none;
    execution.status = asked ? Status::interrupted : Status::timed_out;
  } else if (word == "ask") {
    execution.status = Status::waiting_input;
    execution.input = sandbox::InputRequest{rest, false};
    answer_.reset();
    execution.changed.notify();
    while (execution.status == Status::waiting_input) {
      if (execution.stop_requested() != Stop::none) execution.status = Status::interrupted;
      auto look = std::chrono::milliseconds(10);
      co_await execution.changed.wait(look);
    }
    if (execution.finished()) co_return;
    print(execution, "answer: " + answer_.value_or("none") + "\n");
    execution.status = Status::ok;
  } else if (word == "die") {
    execution.status = Status::kernel_died;
    execution.cause = "SIGSEGV (segmentation fault)";
    execution.kept = alive_ = false;
  } else if (word == "raise") {
    raise(execution);
  } else {
    execution.status = Status::ok;
  }
}

awaitable<void> Sandbox::answer(sandbox::Execution& execution, std::optional<std::string> value) {
  answer_ = std::move(value);
  execution.status = Status::running;
  execution.changed.notify();
  co_return;
}

awaitable<void> Sandbox::close() {
  alive_ = false;
  co_return;
}

awaitable<sandbox::FreezeReport> Sandbox::freeze(fs::path image, sandbox::FreezeOptions options) {
  ++backend_.freezes;
  if (backend_.freezes_uncancelled) co_await asio::this_coro::throw_if_cancelled(false);
  if (backend_.freezes_uncancelled) {
    auto blocked = [time = backend_.freeze_takes] { std::this_thread::sleep_for(time); };
    co_await async::on_pool(*backend_.freezing, blocked);
  } else {
    co_await async::sleep_for(backend_.freeze_takes);
  }
  if (!alive_) throw sandbox::FreezeError("the kernel has ended");
  if (!refuses_to_freeze.empty()) throw sandbox::FreezeError(refuses_to_freeze);
  if (!backend_.freeze_refusal.empty() && !options.allow_lost)
    throw sandbox::FreezeError(backend_.freeze_refusal);
  if (!fs::create_directory(image)) throw std::logic_error("an image is never replaced");
  std::ofstream file(image / "state");
  file << template_ << "\n" << number_ << "\n";
  for (const auto& [name, value] : variables_) file << name << "\n" << value << "\n";
  if (!options.keep_running) alive_ = false;
  sandbox::FreezeReport report;
  report.bytes = 4096;
  report.pause = std::chrono::microseconds(7'000);
  report.lost = backend_.lost;
  co_return report;
}

void Sandbox::thaw(const fs::path& image) {
  std::ifstream file(image / "state");
  std::string made_with, name, value;
  if (!std::getline(file, made_with) || !(file >> number_) || !std::getline(file, value))
    throw sandbox::ThawError("the image is damaged.");
  if (made_with != template_)
    throw sandbox::ThawError("the image was made with template \"" + made_with + "\".");
  while (std::getline(file, name) && std::getline(file, value)) variables_[name] = value;
  how_started_ = sandbox::Start::image;
}

// ---- the backend

sandbox::Capabilities Backend::capabilities() const {
  sandbox::Capabilities can;
  can.network_isolation = true;
  if (images) can.snapshot = sandbox::Capabilities::Snapshot::exact;
  return can;
}

awaitable<std::unique_ptr<sandbox::Sandbox>> Backend::thaw(fs::path image,
                                                           sandbox::SandboxSpec spec,
                                                           sandbox::Thaw reason) {
  if (!refusal.empty()) throw sandbox::StartError(refusal);
  auto thawed = std::make_unique<Sandbox>(*this, std::move(spec));
  thawed->thaw(image);
  thaws.push_back(reason);
  co_return thawed;
}

awaitable<std::unique_ptr<sandbox::Sandbox>> Backend::start(sandbox::SandboxSpec spec) {
  if (!refusal.empty()) throw sandbox::StartError(refusal);
  ++starts;
  std::unique_ptr<sandbox::Sandbox> started = std::make_unique<Sandbox>(*this, std::move(spec));
  co_return started;
}

std::unique_ptr<sandbox::Files> Backend::files(const sandbox::SandboxSpec& spec) {
  if (real_files)
    return std::make_unique<sandbox::local::WorkspaceFiles>(spec.workspace, *real_files);
  return std::make_unique<Files>(spec.workspace);
}

awaitable<std::vector<sandbox::Layer>> Backend::check() { co_return std::vector<sandbox::Layer>(); }

// ---- the call

void Call::progress(double value, std::optional<double>, std::string message) {
  progress_made.emplace_back(value, std::move(message));
}

awaitable<mcp::InputResponses> Call::ask(mcp::InputRequests requests,
                                         std::optional<std::string> state,
                                         std::chrono::milliseconds) {
  if (is_modern) throw mcp::InputRequired{std::move(requests), std::move(state)};
  questions.emplace_back(requests.at(mcp::kAnswerKey).params.at("message").as_string());
  co_await async::sleep_for(answers_after);
  constexpr const char* kActions[] = {"accept", "decline", "cancel"};
  json::object result;
  result["action"] = kActions[static_cast<int>(answer_value->action)];
  result["content"] = answer_value->content;
  mcp::InputResponses responses;
  responses[mcp::kAnswerKey] = std::move(result);
  co_return responses;
}

// ---- the world

namespace {

fs::path temporary_directory() {
  std::string path = fs::temp_directory_path() / "pykeep-test-XXXXXX";
  if (!mkdtemp(path.data())) throw std::runtime_error("mkdtemp");
  return path;
}

sandbox::Template any_python(const std::string& name) {
  if (name == "absent") throw sandbox::StartError("There is no template \"absent\".");
  sandbox::Template python;
  python.name = name;
  return python;
}

}  // namespace

World::World(tools::SessionPolicy policy)
    : directory(temporary_directory()),
      store(directory),
      snapshot_store(directory, tools::snapshot_limits(policy)),
      sessions(io.get_executor(), pool, backend, store, snapshot_store, std::move(policy),
               any_python) {
  backend.freezing = &pool;
  peer.has_default_session = true;
  spdlog::set_level(spdlog::level::warn);
}

World::~World() {
  wait(sessions.shutdown());
  std::error_code ignored;
  fs::remove_all(directory, ignored);
}

void World::run(awaitable<void> work, std::exception_ptr& failure) {
  bool done = false;
  asio::co_spawn(io, std::move(work), [&](std::exception_ptr thrown) {
    failure = thrown;
    done = true;
  });
  auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  io.restart();
  while (!done && std::chrono::steady_clock::now() < deadline)
    io.run_one_for(std::chrono::milliseconds(100));
  if (!done) std::abort();  // nothing below could be destroyed safely
}

void World::wait(awaitable<void> work) {
  std::exception_ptr failure;
  run(std::move(work), failure);
  if (failure) std::rethrow_exception(failure);
}

tools::TicketLimits World::ticket_limits() const {
  tools::TicketLimits limits;
  limits.upload_bytes = upload_max;
  return limits;
}

std::vector<mcp::Tool> World::tools() {
  tools::UploadPolicy uploads;
  uploads.max_bytes = upload_max;
  if (!upload_root.empty()) uploads.roots.push_back(fs::canonical(upload_root));
  return tools::all(sessions, snapshots, pool, uploads, tickets);
}

awaitable<mcp::CallToolResult> World::call(mcp::Call& call, const std::string& name,
                                           json::object arguments) {
  std::vector<mcp::Tool> all = tools();
  auto tool = std::ranges::find(all, name, [](const mcp::Tool& t) { return t.info.name; });
  if (tool == all.end()) throw std::logic_error("no tool " + name);
  mcp::CallToolResult result;
  try {
    result = co_await tool->run(call, arguments);
  } catch (const mcp::ToolError& failure) {
    result = tools::text_result(failure.what());
    result.isError = true;
  } catch (const schemas::DecodeError& failure) {
    result = tools::text_result(failure.what());
    result.isError = true;
  }
  co_return result;
}

mcp::CallToolResult World::call(const std::string& tool, json::object arguments) {
  Call request(peer);
  return wait(call(request, tool, std::move(arguments)));
}

namespace {

awaitable<void> call_into(World& world, const std::string& tool, json::object arguments,
                          mcp::CallToolResult& result) {
  Call request(world.peer);
  result = co_await world.call(request, tool, std::move(arguments));
}

awaitable<void> join(async::TaskGroup& group) { co_await group.join(); }

awaitable<void> limited(std::chrono::milliseconds limit, awaitable<void> work) {
  co_await async::within(limit, std::move(work));
}

}  // namespace

std::vector<mcp::CallToolResult> World::call_together(int count, const std::string& tool,
                                                      json::object arguments) {
  std::vector<mcp::CallToolResult> results(static_cast<std::size_t>(count));
  async::TaskGroup calls(io.get_executor());
  for (mcp::CallToolResult& result : results)
    calls.spawn(call_into(*this, tool, arguments, result));
  wait(join(calls));
  return results;
}

void World::give_up_after(std::chrono::milliseconds limit, awaitable<void> work) {
  try {
    wait(limited(limit, std::move(work)));
  } catch (const boost::system::system_error&) {
  }
}

void World::give_up_after(std::chrono::milliseconds limit, const std::string& tool,
                          json::object arguments) {
  mcp::CallToolResult result;
  give_up_after(limit, call_into(*this, tool, std::move(arguments), result));
}

std::string text_of(const mcp::CallToolResult& result) {
  std::string text;
  for (const mcp::Content& block : result.content) text += block.text.value_or("");
  return text;
}

}  // namespace fake
