#pragma once

// The calls of the PandaStack API that the backend makes, typed. One request each, but for the few
// repetitions that are known to be safe, since the API has no idempotency keys:
//
//   GET, DELETE answered by 404     once more, after 200 ms: a new sandbox may not be known
//                                   everywhere yet
//   429                             after Retry-After, a few times
//   create, when no host has room   after Retry-After, a few times: nothing was created
//   exec and files in a guest that  for Settings::warm_up, from 500 ms apart to 2 s: nothing has
//   does not answer yet             reached it
//
// Nothing else is repeated. An Error tells whether a call that failed can have had an effect.
//
// Each call sends an X-Request-Id of its own, which is in its line in the log (debug level) and in
// its errors. All is called on the executor's thread.

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sandbox/pandastack/caller.hpp"
#include "sandbox/pandastack/errors.hpp"
#include "sandbox/pandastack/exec_stream.hpp"
#include "sandbox/pandastack/http.hpp"
#include "sandbox/pandastack/settings.hpp"
#include "sandbox/pandastack/wire.hpp"

namespace sandbox::pandastack {

inline constexpr std::size_t kMaxUpload = 32 << 20;  // the API's, of one put_file

struct CreateRequest {
  std::string template_name;  // may be empty with from_snapshot
  std::string from_snapshot;  // not empty: a restore
  // Of a restore: as the source has them, else it gets 1 and 256. 0: not sent.
  int cpu = 0, memory_mb = 0;
  Metadata metadata;
  std::int64_t ttl_seconds = 300;  // idle; never 0, which means "at once" (std::invalid_argument)
  bool persistent = false;
};

// A request to a port inside the guest, through the API.
struct ProxyRequest {
  std::string method = "POST";
  int port = 0;
  std::string target;  // "/exchange?after=3": path and query, as it is to be sent
  Headers headers;     // of the guest's server; "Authorization" and "Host" are not passed on
  std::string body;
  std::chrono::milliseconds limit{30'000};
  std::chrono::seconds silence{0};  // as Request::silence
  std::uint64_t cap = kNoCap;       // of the answer's body
};

class Client {
 public:
  // Throws StartError (libcurl). Warns in the log when the key is to go over the network in plain
  // text.
  Client(boost::asio::any_io_executor executor, Settings settings, HttpOptions http = {},
         Patience patience = {});
  // Calls that still wait, and reads of their answers, throw Error (closed).
  ~Client();

  const Settings& settings() const;

  // Whether the key is good: GET /me.
  awaitable<Identity> me();

  // Returns when its guest runs; up to 90 s. An `unknown` outcome may have left a sandbox: look for
  // a tag in the metadata.
  awaitable<SandboxInfo> create(CreateRequest request);
  awaitable<SandboxInfo> get(std::string id);
  awaitable<std::vector<SandboxInfo>> list();  // newest first; at most 16 MiB of JSON
  // Deletes it and its snapshots. False: there was none (so a repetition is a success).
  awaitable<bool> remove(std::string id);

  // Counts as use. What is absent stays as it is. A TTL of 0 means "at once":
  // std::invalid_argument.
  awaitable<void> set_lifecycle(std::string id, std::int64_t ttl_seconds,
                                std::optional<bool> persistent = {});

  awaitable<void> resume(std::string id);
  awaitable<void> hibernate(std::string id);  // up to 400 s
  // Up to 90 s. One that runs already is a success.
  awaitable<void> wake(std::string id);

  // Its id. It stands still meanwhile; up to 400 s.
  awaitable<std::string> snapshot(std::string id);
  // False: there was none, or this server cannot delete snapshots.
  awaitable<bool> remove_snapshot(std::string snapshot_id);

  // A command of root's login shell, in root's home, without stdin. The server does not stop it at
  // any limit, nor when this call is given up: wrap it in `timeout`. `limit` is the command's; the
  // call waits 15 s longer. At most `cap` bytes of answer.
  awaitable<ExecResult> exec(std::string id, std::string command, std::chrono::milliseconds limit,
                             std::uint64_t cap = 8 << 20);
  awaitable<std::unique_ptr<ExecStream>> exec_stream(std::string id, std::string command,
                                                     std::chrono::milliseconds limit,
                                                     std::chrono::seconds silence = {});

  // The vendor's own Python: a session, whose id is returned, and cells in it. It is not to be
  // given anything but ASCII, nor used again after a call that failed.
  awaitable<std::string> open_repl(std::string id);
  awaitable<ReplResult> run_repl(std::string id, std::string session, std::string code,
                                 std::chrono::milliseconds limit);
  awaitable<void> close_repl(std::string id, std::string session);

  // `path` is absolute, in the guest; at most kMaxUpload bytes (std::invalid_argument otherwise).
  // Not atomic; makes the directories.
  awaitable<void> put_file(std::string id, std::string path, std::string bytes);

  // The answer of the guest's server, if it is one below 400; others throw Error, whose `body` has
  // the answer. (A 502 or 503 is the API's own word, as a rule.) Repeated after a 429 only.
  awaitable<std::unique_ptr<Answer>> proxy(std::string id, ProxyRequest request);

 private:
  // Shared with the calls under way.
  std::shared_ptr<Caller> caller_;
};

}  // namespace sandbox::pandastack
