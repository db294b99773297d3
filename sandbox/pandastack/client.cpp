#include "sandbox/pandastack/client.hpp"

#include <algorithm>

#include "sandbox/pandastack/asks.hpp"

namespace sandbox::pandastack {

namespace json = boost::json;

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr milliseconds kCreateLimit{90'000}, kMemoryLimit{400'000}, kFileLimit{300'000};
constexpr milliseconds kBeyondCommand{15'000};
constexpr std::uint64_t kMaxList = 16 << 20, kMaxCell = 64 << 20;

void check_ttl(std::int64_t seconds) {
  if (seconds < 1) refuse("a TTL below one second ends the sandbox at once");
}

json::object as_json(const CreateRequest& request) {
  json::object out, metadata;
  for (const auto& [key, value] : request.metadata) metadata[key] = value;
  if (!request.template_name.empty()) out["template"] = request.template_name;
  if (!request.from_snapshot.empty()) out["from_snapshot"] = request.from_snapshot;
  if (request.cpu) out["cpu"] = request.cpu;
  if (request.memory_mb) out["memory_mb"] = request.memory_mb;
  out["ttl_seconds"] = request.ttl_seconds;
  out["persistent"] = request.persistent;
  out["metadata"] = std::move(metadata);
  return out;
}

Ask to_run(std::string id, std::string text, milliseconds limit, const char* rest) {
  json::object body;
  body["cmd"] = text;
  body["timeout_seconds"] = std::chrono::ceil<seconds>(limit).count();
  Ask ask = to_post("run a command", sandbox_path(id, rest), body);
  ask.limit = limit + kBeyondCommand;
  ask.reaches_guest = true;
  return ask;
}

using Shared = std::shared_ptr<Caller>;

// The coroutines own what they use: the client may go before them.

template <class T>
awaitable<T> fetch(Shared caller, Ask ask, T (*read)(const json::value&)) {
  json::value answer = co_await caller->json(ask);
  try {
    co_return read(answer);
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& unreadable) {
    throw caller->not_understood(ask, unreadable.what());
  }
}

awaitable<void> perform(Shared caller, Ask ask) { co_await caller->json(ask); }

awaitable<bool> perform_if_found(Shared caller, Ask ask) {
  try {
    co_await caller->json(ask);
  } catch (const Error& error) {
    if (error.status != 404) throw;
    co_return false;
  }
  co_return true;
}

awaitable<void> wake_up(Shared caller, Ask ask) {
  try {
    co_await caller->json(ask);
  } catch (const Error& error) {
    if (error.message.find("already running") == error.message.npos) throw;
  }
}

awaitable<void> put(Shared caller, Ask ask) {
  json::value answer = co_await caller->json(ask);
  const json::value* bytes =
      answer.is_object() ? answer.get_object().if_contains("bytes") : nullptr;
  if (bytes && bytes->is_int64() && bytes->get_int64() != std::ssize(ask.body))
    throw caller->not_understood(ask, "it took " + std::to_string(bytes->get_int64()) + " of " +
                                          std::to_string(ask.body.size()) + " bytes");
}

awaitable<std::unique_ptr<Answer>> open(Shared caller, Ask ask) {
  co_return co_await caller->open(ask);
}

awaitable<std::unique_ptr<ExecStream>> stream(Shared caller, Ask ask) {
  auto answer = co_await caller->open(ask);
  co_return std::make_unique<ExecStream>(std::move(answer), "PandaStack could not " + ask.purpose);
}

}  // namespace

Client::Client(boost::asio::any_io_executor executor, Settings settings, HttpOptions http,
               Patience patience) {
  if (http.ca_file.empty()) http.ca_file = settings.ca_file;
  caller_ =
      std::make_shared<Caller>(std::move(executor), std::move(settings), std::move(http), patience);
}

Client::~Client() { caller_->close(); }

const Settings& Client::settings() const { return caller_->settings(); }

awaitable<Identity> Client::me() {
  return fetch(caller_, to_get("name the account", "/me"), read_identity);
}

awaitable<SandboxInfo> Client::create(CreateRequest request) {
  check_ttl(request.ttl_seconds);
  Ask ask = to_post("create a sandbox", "/sandboxes", as_json(request));
  ask.limit = kCreateLimit;
  ask.takes_room = true;
  return fetch(caller_, std::move(ask), read_sandbox);
}

awaitable<SandboxInfo> Client::get(std::string id) {
  return fetch(caller_, to_get("look at a sandbox", sandbox_path(id)), read_sandbox);
}

awaitable<std::vector<SandboxInfo>> Client::list() {
  Ask ask = to_get("list sandboxes", "/sandboxes");
  ask.cap = kMaxList;
  return fetch(caller_, std::move(ask), read_sandboxes);
}

awaitable<bool> Client::remove(std::string id) {
  return perform_if_found(caller_, to_delete("delete a sandbox", sandbox_path(id)));
}

awaitable<void> Client::set_lifecycle(std::string id, std::int64_t ttl_seconds,
                                      std::optional<bool> persistent) {
  check_ttl(ttl_seconds);
  json::object body;
  body["ttl_seconds"] = ttl_seconds;
  if (persistent) body["persistent"] = *persistent;
  Ask ask = to_post("set a sandbox's TTL", sandbox_path(id, "/lifecycle"), body);
  ask.method = "PATCH";
  return perform(caller_, std::move(ask));
}

awaitable<void> Client::resume(std::string id) {
  return perform(caller_, to_post("resume a sandbox", sandbox_path(id, "/resume")));
}

awaitable<void> Client::hibernate(std::string id) {
  Ask ask = to_post("hibernate a sandbox", sandbox_path(id, "/hibernate"));
  ask.limit = kMemoryLimit;
  return perform(caller_, std::move(ask));
}

awaitable<void> Client::wake(std::string id) {
  Ask ask = to_post("wake a sandbox", sandbox_path(id, "/wake"));
  ask.limit = kCreateLimit;
  return wake_up(caller_, std::move(ask));
}

awaitable<std::string> Client::snapshot(std::string id) {
  Ask ask = to_post("snapshot a sandbox", sandbox_path(id, "/snapshots"));
  ask.limit = kMemoryLimit;
  return fetch(caller_, std::move(ask), read_id);
}

awaitable<bool> Client::remove_snapshot(std::string snapshot_id) {
  Ask ask = to_delete("delete a snapshot", snapshot_path(snapshot_id));
  return perform_if_found(caller_, std::move(ask));
}

awaitable<ExecResult> Client::exec(std::string id, std::string command, milliseconds limit,
                                   std::uint64_t cap) {
  Ask ask = to_run(std::move(id), std::move(command), limit, "/exec");
  ask.cap = cap;
  return fetch(caller_, std::move(ask), read_exec);
}

awaitable<std::unique_ptr<ExecStream>> Client::exec_stream(std::string id, std::string command,
                                                           milliseconds limit, seconds silence) {
  Ask ask = to_run(std::move(id), std::move(command), limit, "/exec/stream");
  ask.cap = kNoCap;
  ask.silence = silence;
  return stream(caller_, std::move(ask));
}

awaitable<std::string> Client::open_repl(std::string id) {
  json::object body;
  body["language"] = "python";
  Ask ask = to_post("start a Python session", sandbox_path(id, "/repl/sessions"), body);
  ask.reaches_guest = true;
  return fetch(caller_, std::move(ask), read_id);
}

awaitable<ReplResult> Client::run_repl(std::string id, std::string session, std::string code,
                                       milliseconds limit) {
  json::object body;
  body["code"] = code;
  body["timeout_ms"] = limit.count();
  std::string rest = "/repl/sessions/" + percent_encoded(session) + "/run";
  Ask ask = to_post("run a cell", sandbox_path(id, rest), body);
  ask.limit = limit + kBeyondCommand;
  ask.cap = kMaxCell;
  return fetch(caller_, std::move(ask), read_repl);
}

awaitable<void> Client::close_repl(std::string id, std::string session) {
  std::string rest = "/repl/sessions/" + percent_encoded(session);
  return perform(caller_, to_delete("end a Python session", sandbox_path(id, rest)));
}

awaitable<void> Client::put_file(std::string id, std::string path, std::string bytes) {
  if (bytes.size() > kMaxUpload) refuse(path + ": more than 32 MiB at once");
  Ask ask = to_post("write a file", sandbox_path(id, "/fs"));
  ask.method = "PUT";
  ask.query = path_query(path);
  ask.headers.front().second = "application/octet-stream";
  ask.body = std::move(bytes);
  ask.limit = kFileLimit;
  ask.reaches_guest = true;
  return put(caller_, std::move(ask));
}

awaitable<std::unique_ptr<Answer>> Client::proxy(std::string id, ProxyRequest request) {
  if (!request.target.starts_with('/')) refuse(request.target + ": expected a path");
  std::size_t query = std::min(request.target.find('?'), request.target.size());
  Ask ask;
  ask.purpose = "reach port " + std::to_string(request.port) + " of a sandbox";
  ask.method = std::move(request.method);
  ask.path =
      sandbox_path(id, "/proxy/" + std::to_string(request.port)) + request.target.substr(0, query);
  if (query < request.target.size()) ask.query = request.target.substr(query + 1);
  ask.headers = std::move(request.headers);
  ask.body = std::move(request.body);
  ask.limit = request.limit;
  ask.silence = request.silence;
  ask.cap = request.cap;
  return open(caller_, std::move(ask));
}

}  // namespace sandbox::pandastack
