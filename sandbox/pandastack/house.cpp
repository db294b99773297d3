#include "sandbox/pandastack/house.hpp"

#include <spdlog/spdlog.h>

#include <set>

#include "sandbox/pandastack/persist.hpp"
#include "sandbox/session_store.hpp"

namespace sandbox::pandastack {

using namespace std::chrono_literals;

namespace {

constexpr auto kReapPeriod = 10min;
constexpr int kLooks = 3;  // for a sandbox that may have been made
constexpr auto kLookPause = 1s;

// In the metadata of every microVM of ours. (Other members are the server's.)
constexpr const char* kOwner = "pykeep.owner";
constexpr const char* kSession = "pykeep.session";
constexpr const char* kTag = "pykeep.tag";

std::string of(const Metadata& metadata, const char* key) {
  auto found = metadata.find(key);
  return found == metadata.end() ? std::string() : found->second;
}

}  // namespace

awaitable<std::shared_ptr<Client>> House::connect() {
  if (client_) co_return client_;
  struct Found {
    Settings settings;
    std::string owner;
  };
  auto find = [this] {
    Found found;
    found.settings = read_settings();
    found.owner = owner_of(options.root);
    return found;
  };
  std::string problem;
  try {
    Found found = co_await async::on_pool(pool, find);
    if (client_) co_return client_;  // of another who came here meanwhile
    owner_ = std::move(found.owner);
    client_ = std::make_shared<Client>(executor, std::move(found.settings), options.http,
                                       options.client_patience);
  } catch (const StoreError& failure) {
    problem = failure.what();
  }
  if (!problem.empty()) throw StartError(problem);
  reaping_.spawn(reap());
  co_return client_;
}

awaitable<SessionVm> House::record_of(const SandboxSpec& spec) {
  auto read = [directory = spec.directory] {
    return read_session_vm(directory).value_or(SessionVm());
  };
  co_return co_await async::on_pool(pool, std::move(read));
}

awaitable<void> House::remember(const SandboxSpec& spec, std::optional<Vm> vm) {
  SessionVm record;
  record.vm = std::move(vm);
  auto write = [directory = spec.directory, &record] {
    write_session_vm(directory, record);
    return true;
  };
  co_await async::on_pool(pool, std::move(write));
}

awaitable<SandboxInfo> House::create(const SandboxSpec& spec, CreateRequest request) {
  auto client = co_await connect();
  SessionVm record = co_await record_of(spec);
  record.tag = random_hex(16);
  auto write = [directory = spec.directory, &record] {
    write_session_vm(directory, record);
    return true;
  };
  co_await async::on_pool(pool, std::move(write));
  request.ttl_seconds = options.ttl.count();
  request.metadata["pykeep"] = "1";
  request.metadata[kTag] = *record.tag;
  request.metadata[kSession] = spec.name;
  // Without a directory nobody will look for it: it expires.
  if (!spec.directory.empty()) request.metadata[kOwner] = owner_;
  std::optional<Error> failure;
  try {
    co_return co_await client->create(std::move(request));
  } catch (const Error& failed) {
    failure.emplace(failed);
  }
  if (failure->outcome == Outcome::refused) throw std::move(*failure);
  co_return co_await find(*record.tag, std::move(*failure));
}

// A create that may have had its effect: only the list can tell.
awaitable<SandboxInfo> House::find(const std::string& tag, Error failure) {
  for (int look = 0; look < kLooks; ++look) {
    co_await async::sleep_for(kLookPause);
    try {
      auto all = co_await client_->list();
      for (SandboxInfo& each : all)
        if (of(each.metadata, kTag) == tag) co_return std::move(each);
    } catch (const Error& unreachable) {
      spdlog::info("looking for a sandbox that may have been made: {}", unreachable.what());
    }
  }
  throw std::move(failure);
}

awaitable<void> House::let_go(std::string id) {
  auto look = [root = options.root, &id] { return sources_of_snapshots(root).contains(id); };
  auto client = co_await connect();
  bool is_source = co_await async::on_pool(pool, std::move(look));
  if (!is_source) {
    co_await client->remove(std::move(id));
    co_return;
  }
  try {
    co_await client->set_lifecycle(std::move(id), 1, false);
  } catch (const Error& failure) {
    if (failure.status != 404) throw;
  }
}

awaitable<void> House::let_go_quietly(std::string id) {
  std::function<awaitable<void>()> go = [&] { return let_go(id); };
  try {
    co_await persist(go);
  } catch (const std::runtime_error& failure) {
    spdlog::warn("the sandbox {} at PandaStack is not needed any more, and cannot be deleted: {}",
                 id, failure.what());
  }
}

void House::let_go_soon(std::string id) { tasks.spawn(let_go_quietly(std::move(id))); }

awaitable<void> House::join() {
  co_await reaping_.join();
  co_await tasks.join();
}

// ---- what crashes leave behind

awaitable<void> House::reap() {
  for (;;) {
    try {
      co_await reap_once();
    } catch (const Error& failure) {
      spdlog::info("sandboxes that nobody needs are looked for later: {}", failure.what());
    }
    co_await async::sleep_for(kReapPeriod);
  }
}

// In this order: a microVM's name is in its session's record, or its tag is, before it exists. One
// whose record cannot be read may be somebody's, and is left: it expires by itself if it is
// nobody's.
awaitable<void> House::reap_once() {
  auto all = co_await client_->list();
  std::vector<std::string> orphans;
  auto look = [this, &all, &orphans] {
    for (const SandboxInfo& each : all) {
      if (of(each.metadata, kOwner) != owner_) continue;
      std::string session = of(each.metadata, kSession);
      bool is_name = !session.empty() && session.find('/') == session.npos && session[0] != '.';
      std::optional<SessionVm> record = SessionVm();
      if (is_name) record = read_session_vm(options.root / "sessions" / session);
      if (!record) continue;
      bool named = record->vm && record->vm->id == each.id;
      bool tagged = record->tag && *record->tag == of(each.metadata, kTag);
      if (!named && !tagged) orphans.push_back(each.id);
    }
    return true;
  };
  co_await async::on_pool(pool, look);
  for (const std::string& id : orphans) {
    spdlog::info("deleting the sandbox {} at PandaStack, which no session has", id);
    co_await let_go_quietly(id);
  }
}

}  // namespace sandbox::pandastack
