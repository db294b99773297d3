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
  // creating, running, paused, stopping, hibernated, failed
  std::string status;
  int cpu = 0, memory_mb = 0;  // as the template has it, whatever was asked for
  Metadata metadata;           // the server adds `workspace`
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

struct Identity {
  std::string user;  // as far as told
};

// Each throws std::runtime_error ("the answer has no id") when what is needed is not there.
SandboxInfo read_sandbox(const boost::json::value& in);
std::vector<SandboxInfo> read_sandboxes(const boost::json::value& in);  // [], null, {"items": []}
ExecResult read_exec(const boost::json::value& in);
ReplResult read_repl(const boost::json::value& in);
std::string read_id(const boost::json::value& in);  // of a snapshot, or a session of the vendor's
Identity read_identity(const boost::json::value& in);

// Percent-encoded, as one part of a path or a value of a query: only letters, digits, and -._~
// stay.
std::string percent_encoded(std::string_view text);

}  // namespace sandbox::pandastack
