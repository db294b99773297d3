// What lies on disk, for the operator: of every principal.

#include <cstdio>
#include <ctime>
#include <fstream>
#include <limits>

#include "app/backends.hpp"
#include "app/commands.hpp"
#include "app/keep.hpp"
#include "mcp/error.hpp"
#include "sandbox/bounded_text.hpp"
#include "sandbox/session_store.hpp"
#include "sandbox/snapshot_store.hpp"
#include "tools/notebook.hpp"

namespace app {

namespace {

sandbox::SnapshotStore snapshot_store(const Options& options) {
  return sandbox::SnapshotStore(store_root(options), {});
}

std::string time_text(std::int64_t seconds) {
  std::time_t time = seconds;
  std::tm parts{};
  localtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%F %T", &parts);
  return text;
}

std::string named(const std::string& id, const std::string& name) {
  return name.empty() ? id : id + " \"" + name + "\"";
}

int unknown(const char* what, const Options& options) {
  std::fprintf(stderr, "pykeep: there is no %s named %s; `pykeep %ss list` shows them\n", what,
               options.stored_id.c_str(), what);
  return 1;
}

async::awaitable<void> remove(Keep& keep, const sandbox::SnapshotRecord& record,
                              std::string& problem) {
  try {
    co_await keep.snapshots.remove(record.principal, record.id);
  } catch (const mcp::ToolError& refused) {
    problem = refused.what();
  }
}

async::awaitable<void> forget(Keep& keep, const std::filesystem::path& session) {
  sandbox::SandboxSpec spec;
  spec.name = session.filename();
  spec.workspace = session / "workspace";
  spec.directory = session;
  co_await keep.backend.forget(std::move(spec));
}

std::optional<sandbox::SnapshotRecord> find(const Options& options) {
  for (auto& record : snapshot_store(options).list(std::nullopt))
    if (record.id == options.stored_id) return std::move(record);
  return std::nullopt;
}

}  // namespace

int snapshots_list(const Options& options) {
  for (const auto& record : snapshot_store(options).list(std::nullopt))
    std::printf("%s  %s  %s  of %s\n", time_text(record.created).c_str(),
                named(record.id, record.name).c_str(), sandbox::size_text(record.bytes()).c_str(),
                record.principal.c_str());
  return 0;
}

int snapshots_show(const Options& options) {
  auto record = find(options);
  if (!record) return unknown("snapshot", options);
  std::printf("id: %s\nname: %s\nprincipal: %s\nmade: %s\nsession: %s\nexecution: %d\n",
              record->id.c_str(), record->name.c_str(), record->principal.c_str(),
              time_text(record->created).c_str(), record->session.c_str(), record->execution);
  std::printf("template: %s\nnetwork: %s\nmemory: %s\nfiles: %s\n", record->python.c_str(),
              record->network ? "on" : "off", sandbox::size_text(record->image_bytes).c_str(),
              sandbox::size_text(record->file_bytes).c_str());
  for (const std::string& lost : record->lost) std::printf("not in it: %s\n", lost.c_str());
  return 0;
}

int snapshots_delete(const Options& options) {
  auto record = find(options);
  if (!record) return unknown("snapshot", options);
  std::string problem;
  run_to_end(options, [&](Keep& keep) { return remove(keep, *record, problem); });
  if (problem.empty()) return 0;
  std::fprintf(stderr, "pykeep: %s\n", problem.c_str());
  return 1;
}

int sessions_list(const Options& options) {
  for (const auto& record : sandbox::SessionStore(store_root(options)).list(std::nullopt)) {
    bool whole = record.image && record.image->current;
    std::printf("%s  %s  %s  of %s\n", time_text(record.used).c_str(),
                named(record.id, record.name).c_str(), whole ? "variables and files" : "files",
                record.principal.c_str());
  }
  return 0;
}

int sessions_close(const Options& options) {
  using State = sandbox::SessionStore::Lookup::State;
  sandbox::SessionStore store(store_root(options));
  for (const auto& record : store.list(std::nullopt)) {
    if (record.id != options.stored_id) continue;
    auto found = store.open(record.principal, record.id);
    if (found.state == State::busy)
      std::fprintf(stderr, "pykeep: a pykeep process runs %s\n", record.id.c_str());
    if (found.state != State::leased) return 1;
    run_to_end(options, [&](Keep& keep) { return forget(keep, found.lease->directory); });
    store.remove(*found.lease);
    return 0;
  }
  return unknown("session", options);
}

// Also of a session that a server runs: its history can be read at any time.
int sessions_export(const Options& options) {
  sandbox::SessionStore store(store_root(options));
  std::vector<std::string> found;
  for (const auto& record : store.list(std::nullopt))
    if (record.id == options.stored_id || record.name == options.stored_id)
      found.push_back(record.id);
  if (found.empty()) return unknown("session", options);
  if (found.size() > 1) {
    std::fprintf(stderr, "pykeep: several sessions are called that; name one by its handle:\n");
    for (const std::string& id : found) std::fprintf(stderr, "  %s\n", id.c_str());
    return 1;
  }
  auto format =
      options.format == "py" ? tools::ExportFormat::script : tools::ExportFormat::notebook;
  std::string text = tools::exported(store.history_of(found.front()), format,
                                     std::numeric_limits<std::size_t>::max());
  if (options.output.empty() || options.output == "-") {
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  }
  std::ofstream out(options.output, std::ios::binary | std::ios::trunc);
  out << text << std::flush;
  if (out) return 0;
  std::fprintf(stderr, "pykeep: cannot write %s\n", options.output.c_str());
  return 1;
}

}  // namespace app
