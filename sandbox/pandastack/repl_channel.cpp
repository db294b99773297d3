#include "sandbox/pandastack/repl_channel.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <deque>

#include "async/task_group.hpp"
#include "sandbox/bounded_text.hpp"
#include "schemas/base64.hpp"

namespace sandbox::pandastack {

namespace asio = boost::asio;
namespace json = boost::json;
using std::chrono::milliseconds;
using namespace std::chrono_literals;

namespace {

constexpr auto kCellLimit = 24h;  // the session's own limits come first
constexpr auto kEndLimit = 5s;
constexpr const char* kKillAll = "pkill -KILL -f '^python3 -u /tmp/fcs_pykernel.py'";

// `S`: the code, in base64. Its value is that of the last expression, as of any cell.
constexpr std::string_view kWrapper =
    "(lambda a, g, t: (lambda e: (exec(compile(a.Module(t.body[:-1] if e else t.body, []), "
    "'<cell>', 'exec'), g), eval(compile(a.Expression(t.body[-1].value), '<cell>', 'eval'), g) if "
    "e else None)[1])(bool(t.body) and isinstance(t.body[-1], a.Expr)))(__import__('ast'), "
    "globals(), __import__('ast').parse(__import__('base64').b64decode('S').decode()))";

json::object event(const char* name, std::int64_t id) {
  json::object made;
  made["ev"] = name;
  made["id"] = id;
  return made;
}

bool is_binary(std::string_view mime) {
  return mime.starts_with("image/") && mime != "image/svg+xml";
}

Frame display_of(const json::object& result, std::int64_t id, bool is_last) {
  Frame frame;
  frame.header = event("display", id);
  json::object data;
  json::array binary;
  for (const auto& [mime, value] : result) {
    std::string text = value.is_string() ? std::string(value.get_string()) : json::serialize(value);
    auto bytes = is_binary(mime) ? schemas::base64_decode(text) : std::nullopt;
    if (!bytes) {
      data[mime] = text;
      continue;
    }
    json::object part;
    part["mime"] = mime;
    part["length"] = bytes->size();
    binary.push_back(std::move(part));
    frame.payload += *bytes;
  }
  frame.header["data"] = std::move(data);
  frame.header["binary"] = std::move(binary);
  frame.header["metadata"] = json::object();
  frame.header["result"] = is_last;
  frame.header["update"] = false;
  return frame;
}

// The last line of a traceback: "ZeroDivisionError: division by zero".
Frame error_of(const std::string& traceback, std::int64_t id) {
  std::size_t end = traceback.find_last_not_of('\n');
  std::string said = end == traceback.npos ? "Error" : traceback.substr(0, end + 1);
  std::size_t last = said.rfind('\n');
  std::string line = last == said.npos ? said : said.substr(last + 1);
  std::size_t colon = line.find(": ");
  Frame frame;
  frame.header = event("error", id);
  frame.header["name"] = line.substr(0, colon);
  frame.header["value"] = colon == line.npos ? std::string() : line.substr(colon + 2);
  json::array lines;
  lines.emplace_back(said);
  frame.header["traceback"] = std::move(lines);
  return frame;
}

class ReplChannel final : public RemoteChannel {
 public:
  ReplChannel(asio::any_io_executor executor, std::shared_ptr<Client> client, std::string vm)
      : core_(std::make_shared<Core>(executor, std::move(client), std::move(vm))) {
    core_->tasks.spawn(open(core_));
  }
  ~ReplChannel() override {
    core_->tasks.cancel();
    let_go("its session was left");
  }

  awaitable<KernelEvent> next() override {
    auto core = core_;
    for (;;) {
      if (auto event = core->pop()) co_return std::move(*event);
      if (core->closed) co_return Closed();
      co_await core->arrived.wait();
    }
  }
  std::optional<KernelEvent> poll() override { return core_->pop(); }
  awaitable<void> send(json::object header, std::string) override {
    if (core_->closed)
      throw boost::system::system_error(asio::error::not_connected, "send to the kernel");
    if (header.at("op") == "execute")
      core_->tasks.spawn(
          run(core_, header.at("id").as_int64(), std::string(header.at("code").as_string())));
    if (header.at("op") == "shutdown") kill();
    co_return;
  }
  void interrupt() override {}      // it cannot be
  void kill_children() override {}  // nor can these be told apart
  void kill() override {
    if (!core_->closed) core_->tasks.spawn(end(core_));
  }
  awaitable<Exit> exit() override {
    auto core = core_;
    auto deadline = std::chrono::steady_clock::now() + kEndLimit;
    while (!core->closed && std::chrono::steady_clock::now() < deadline)
      co_await core->arrived.wait(kEndLimit);
    co_return core->how;
  }
  std::uint64_t memory_kills() override { return 0; }
  void let_go(std::string because) override { core_->close(std::move(because)); }
  awaitable<void> settle(milliseconds limit) override {
    auto joining = core_->tasks.join();
    co_await async::within(limit, std::move(joining));
  }

 private:
  struct Core {
    Core(const asio::any_io_executor& executor, std::shared_ptr<Client> client_, std::string vm_)
        : client(std::move(client_)), vm(std::move(vm_)), arrived(executor), tasks(executor) {}
    void put(KernelEvent event) {
      events.push_back(std::move(event));
      arrived.notify();
    }
    std::optional<KernelEvent> pop() {
      if (events.empty()) return std::nullopt;
      KernelEvent event = std::move(events.front());
      events.pop_front();
      return event;
    }
    void close(std::string because) {
      if (std::exchange(closed, true)) return;
      how.cause = std::move(because);
      put(Closed());
    }

    std::shared_ptr<Client> client;
    std::string vm, session;
    std::deque<KernelEvent> events;
    bool closed = false;
    Exit how;
    int count = 0;
    async::Changed arrived;
    async::TaskGroup tasks;
  };

  static awaitable<void> open(std::shared_ptr<Core> core);
  static awaitable<void> run(std::shared_ptr<Core> core, std::int64_t id, std::string code);
  static awaitable<void> end(std::shared_ptr<Core> core);
  static void show(Core& core, const ReplResult& result, std::int64_t id);

  std::shared_ptr<Core> core_;
};

awaitable<void> ReplChannel::open(std::shared_ptr<Core> core) {
  try {
    core->session = co_await core->client->open_repl(core->vm);
  } catch (const Error& failure) {
    core->close(failure.what());
    co_return;
  }
  Frame ready;
  ready.header["ev"] = "ready";
  ready.header["python"] = "3 (PandaStack's own kernel)";
  ready.header["ipython"] = "-";
  ready.header["executions"] = 0;
  core->put(std::move(ready));
}

void ReplChannel::show(Core& core, const ReplResult& result, std::int64_t id) {
  if (!result.standard_output.empty()) core.put(StreamBytes{false, result.standard_output});
  bool failed = result.exit_code != 0;
  if (failed)
    core.put(error_of(result.standard_error, id));
  else if (!result.standard_error.empty())
    core.put(StreamBytes{true, result.standard_error});
  for (const json::object& each : result.results)
    core.put(display_of(each, id, !each.contains("image/png")));
  Frame done;
  done.header = event("done", id);
  done.header["status"] = failed ? "error" : "ok";
  done.header["execution_count"] = core.count;
  core.put(std::move(done));
}

awaitable<void> ReplChannel::run(std::shared_ptr<Core> core, std::int64_t id, std::string code) {
  Frame started;
  started.header = event("started", id);
  started.header["execution_count"] = ++core->count;
  core->put(std::move(started));
  std::string cell = repl_cell(code);
  std::string problem;
  try {
    auto result =
        co_await core->client->run_repl(core->vm, core->session, std::move(cell), kCellLimit);
    if (!core->closed) show(*core, result, id);
  } catch (const Error& failure) {
    problem = failure.what();
  }
  if (problem.empty()) co_return;
  core->how.unreachable = !core->closed;
  core->close("PandaStack's own kernel has failed (" + problem + ")");
}

// Its process would go on until it next prints.
awaitable<void> ReplChannel::end(std::shared_ptr<Core> core) {
  try {
    if (!core->session.empty()) co_await core->client->close_repl(core->vm, core->session);
    co_await core->client->exec(core->vm, kKillAll, kEndLimit);
  } catch (const Error& failure) {
    spdlog::info("PandaStack's own kernel cannot be ended: {}", failure.what());
  }
  core->close("it was ended");
}

}  // namespace

std::string repl_cell(std::string_view code) {
  bool is_ascii = std::ranges::all_of(code, [](unsigned char c) { return c < 0x80; });
  if (is_ascii) return std::string(code);
  std::string cell(kWrapper);
  std::size_t at = cell.find("'S'");
  return cell.replace(at + 1, 1, schemas::base64_encode(code));
}

std::unique_ptr<RemoteChannel> make_repl_channel(asio::any_io_executor executor,
                                                 std::shared_ptr<Client> client, std::string vm) {
  return std::make_unique<ReplChannel>(executor, std::move(client), std::move(vm));
}

}  // namespace sandbox::pandastack
