#pragma once

// The seam between sessions and whoever provides isolated Python.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "async/async.hpp"
#include "sandbox/execution.hpp"
#include "sandbox/files.hpp"

namespace sandbox {

// The sandbox cannot be had: for the reader, with the remedy. Nothing was started.
struct StartError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// A kernel cannot be frozen: for the reader, with what stands in the way. It goes on running.
struct FreezeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// An image cannot be thawed here: for the reader, with the reason (damaged, a library it maps was
// changed, another CPU) and the remedy. Nothing was started, the image is as it was.
struct ThawError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// All sizes in bytes. Zero is not "unlimited": every limit is always set.
struct Limits {
  std::uint64_t memory = 2ull << 30;     // of all processes together, and of one
  std::uint64_t processes = 256;         // and threads
  std::uint64_t open_files = 1024;       // per process
  std::uint64_t tmp = 512ull << 20;      // /tmp and /dev/shm each; counts as memory too
  std::uint64_t workspace = 4ull << 30;  // sampled: exceeding it ends the cell
  std::uint64_t file = 2ull << 30;       // one file
  bool operator==(const Limits&) const = default;
};

// What kernels run in: a Python environment on this machine, or what a remote backend calls so.
struct Template {
  std::string name;
  std::filesystem::path python;  // the interpreter to run, inside its environment; empty: remote
  std::vector<std::filesystem::path>
      visible;              // host directories mounted read-only, same path inside
  std::string description;  // "Python 3.11.2, IPython 8.5.0" as far as known
};

struct SandboxSpec {
  std::string name;                 // of the session: for cgroups and logs; [a-z0-9-]
  std::filesystem::path workspace;  // exists, absolute; becomes /workspace, if that is local
  // The session's own (session_store.hpp), for a file of the backend's that lives and dies with it;
  // empty: nobody will come back to this sandbox, and the backend keeps nothing of it.
  std::filesystem::path directory;
  Template python;
  Limits limits;
  bool network = false;
  std::vector<std::pair<std::string, std::string>> environment;  // beyond the fixed short list
};

struct Usage {
  std::uint64_t memory = 0;       // bytes now
  std::uint64_t memory_peak = 0;  // 0: unknown
  std::uint64_t processes = 0;
  double cpu_seconds = 0;
};

struct FreezeOptions {
  bool keep_running = true;  // false: the kernel ends with a successful freeze (hibernation)
  bool allow_lost = false;   // go on without descriptors that cannot be carried, and say which
  // Waiting for other freezes included. Less than 2 s: the image is written to the disk by the
  // system, soon afterwards; should power fail before, thaw() says that it is damaged.
  std::chrono::milliseconds limit{30'000};
  // Set from elsewhere, it makes the freeze fail soon. May be null.
  std::shared_ptr<const std::atomic<bool>> given_up;
};

struct FreezeReport {
  std::uint64_t bytes = 0;             // on disk, of this image alone
  std::chrono::microseconds pause{0};  // how long the kernel stood still
  std::vector<std::string> lost;       // what was not carried: "fd 7: socket"
};

// How a sandbox came up, for its session's first line and the metrics.
enum class Start { cold, template_image, image };

// Why an image is thawed. Its kernel keeps the state of `random` and numpy as it was frozen, except
// for a fork, which draws its own.
enum class Thaw {
  snapshot,  // a session goes back to it
  wake,      // the session that was frozen goes on
  fork,      // another session begins with it
};
const char* name_of(Thaw reason);  // on the kernel link, in `resumed`

// One sandbox with its kernel. Destroying it kills every process in it at once, where sandboxes end
// with the server (Capabilities::outlives_server); else it only lets go of it.
class Sandbox {
 public:
  virtual ~Sandbox() = default;

  // As Kernel::run and Kernel::answer (kernel.hpp).
  virtual awaitable<void> run(Execution& execution) = 0;
  virtual awaitable<void> answer(Execution& execution, std::optional<std::string> value) = 0;

  virtual bool alive() const = 0;
  virtual std::string description() const = 0;  // "Python 3.11.2, IPython 8.5.0"
  virtual Files& files() = 0;
  virtual Usage usage() = 0;
  virtual Start how_started() const { return Start::cold; }
  // Why it did not start from an image although there should be one; empty otherwise.
  virtual std::string cold_because() const { return {}; }
  // As Kernel::background.
  virtual std::string background() const { return {}; }
  // Writes the kernel's memory to the directory `image`, which is made by this call and is complete
  // or absent afterwards. Only between executions. Throws FreezeError.
  virtual awaitable<FreezeReport> freeze(std::filesystem::path image, FreezeOptions options);
  // Ends the kernel, within a second. The session's files stay.
  virtual awaitable<void> close() = 0;
  // Instead of close(), at the end of the server: lets the kernel run on, if Backend::adopt() will
  // find it again. False when it will not; nothing was done then.
  virtual awaitable<bool> leave();
  // Whether the session's files from before this start are there. (Of a first start it means
  // nothing.)
  virtual bool kept_files() const { return true; }
  // Bytes of memory that it has, where those of its spec do not count; else 0.
  virtual std::uint64_t memory() const { return 0; }
  // The last execution of a kernel that was adopted; 0 when it is not known.
  virtual int last_execution() const { return 0; }
};

struct Capabilities {
  enum class Snapshot { none, files_only, exact };
  Snapshot snapshot = Snapshot::none;
  bool network_isolation = false;
  // Kernels run on when the server ends, however it does, and adopt() finds them: checkpoints for
  // that case are not taken.
  bool outlives_server = false;
  // A session's files are in its sandbox: to reach them is to bring that up.
  bool files_in_sandbox = false;
  // What a new session's owner, and a snapshot's, has to know of this backend: a sentence each, or
  // nothing.
  std::string session_note, snapshot_note;
};

// One layer of the isolation, as `pykeep doctor` reports it.
struct Layer {
  enum class State { achieved, weaker, absent };
  std::string name;  // "user namespace"
  State state = State::absent;
  std::string detail;    // what was found
  std::string remedy;    // the exact fix; empty when achieved
  bool required = true;  // absent and required: no sandbox is started
};

class Backend {
 public:
  virtual ~Backend() = default;
  // A running sandbox whose kernel has answered. Throws StartError.
  virtual awaitable<std::unique_ptr<Sandbox>> start(SandboxSpec spec) = 0;
  // The same from an image that freeze() made: the kernel goes on where it was frozen. Any number
  // of sandboxes may be thawed from one image. Throws ThawError, or StartError as start().
  virtual awaitable<std::unique_ptr<Sandbox>> thaw(std::filesystem::path image, SandboxSpec spec,
                                                   Thaw reason);
  // The session's sandbox with its kernel, which a server left that is gone, or that was out of
  // reach; null when there is none, or its kernel has ended. A cell that still runs is interrupted.
  // Throws StartError when that cannot be told: nothing was changed.
  virtual awaitable<std::unique_ptr<Sandbox>> adopt(SandboxSpec spec);
  // Deletes what is kept elsewhere for a session that is being deleted. Never throws: what cannot
  // be deleted now is found and deleted later, or expires.
  virtual awaitable<void> forget(SandboxSpec spec);
  // Deletes what is kept elsewhere for an image. Throws StoreError when it may still be there.
  virtual awaitable<void> discard(std::filesystem::path image);
  // Brings up, ahead of time, what start() will return at once for an equal spec whose workspace is
  // empty; `spec.name` and `spec.workspace` do not count (the workspace that was prepared is then
  // renamed to the one that start() names). A hint: it may do nothing and never throws. At most
  // BackendOptions::spares are kept, and none for longer than it is likely to be of use.
  virtual void prepare(SandboxSpec spec);
  // The server is about to end: what goes on in the background for sessions to come is given up,
  // so that the time is for those that are there. Waits for nothing; stop() is still to be awaited.
  virtual void wind_down();
  // Ends what was prepared and what goes on in the background. To be awaited before the backend is
  // destroyed, once nothing is started any more.
  virtual awaitable<void> stop();
  // The files of a session that has no running sandbox; not to be asked of a backend whose files
  // are in the sandbox (Capabilities::files_in_sandbox).
  virtual std::unique_ptr<Files> files(const SandboxSpec& spec) = 0;
  virtual Capabilities capabilities() const = 0;
  virtual awaitable<std::vector<Layer>> check() = 0;  // for doctor; tries everything for real
};

}  // namespace sandbox
