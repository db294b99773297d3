#pragma once

// The API's answers (reference: pandastack-io/pandastack-ai, agent/internal/api and api/cmd/api).
// Read leniently: unknown members, absent ones and null are fine, so that every version is; only
// the ids that a call is made for have to be there.

#include <boost/json.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sandbox::pandastack {

using Metadata = std::map<std::string, std::string>;

// A sandbox: the microVM.
struct SandboxInfo {
  std::string id;
  std::string template_name;  // may be empty after a restore
  // creating, running, paused, stopping, hibernated, failed
  std::string status;
  int cpu = 0, memory_mb = 0;  // as the template has it, whatever was asked for
  Metadata metadata;           // the server adds `workspace`
  std::string from_snapshot;
  std::string boot_mode;
  int boot_ms = 0;
  std::string created_at;  // RFC 3339
};

struct Lifecycle {
  std::int64_t ttl_seconds = 0;  // of idleness
  bool persistent = false;
  std::int64_t idle_seconds = 0;
};

struct SnapshotInfo {
  std::string id;
  std::string sandbox_id;
  std::string template_name;     // empty: not told
  std::uint64_t size_bytes = 0;  // 0: not told
  std::string created_at;
};

struct ForkTree {
  struct Child {
    std::string id;
    int boot_ms = 0;
    std::string boot_mode;
  };
  std::string tree_id, snapshot_id;
  std::vector<Child> children;
  std::vector<std::string> errors;  // one for each child that could not be had
};

struct ExecResult {
  int exit_code = 0;
  std::string standard_output, standard_error;  // text: what is not UTF-8 was replaced on the way
};

// What one cell of the vendor's own Python gave (agent/internal/api/repl_sessions.go).
struct ReplResult {
  int exit_code = 0;
  std::string standard_output, standard_error;
  std::vector<boost::json::object> results;  // MIME type -> text; of images base64
};

struct FileEntry {
  std::string name;  // of the entry, without its directory
  bool is_directory = false;
  bool is_link = false;
  std::uint64_t size = 0;
  std::int64_t modified = 0;  // seconds since the epoch
};

struct Identity {
  std::string user, organisation;  // as far as told
};

// Each throws std::runtime_error ("the answer has no id") when what is needed is not there.
SandboxInfo read_sandbox(const boost::json::value& in);
std::vector<SandboxInfo> read_sandboxes(const boost::json::value& in);  // [], null, {"items": []}
Lifecycle read_lifecycle(const boost::json::value& in);
SnapshotInfo read_snapshot(const boost::json::value& in);
std::vector<SnapshotInfo> read_snapshots(const boost::json::value& in);
ForkTree read_fork_tree(const boost::json::value& in);
ExecResult read_exec(const boost::json::value& in);
ReplResult read_repl(const boost::json::value& in);
std::string read_repl_session(const boost::json::value& in);  // its id
FileEntry read_file_entry(const boost::json::value& in);
std::vector<FileEntry> read_directory(const boost::json::value& in);
Identity read_identity(const boost::json::value& in);

// Percent-encoded, as one part of a path or a value of a query: only letters, digits, and -._~
// stay.
std::string percent_encoded(std::string_view text);

}  // namespace sandbox::pandastack
