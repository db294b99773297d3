#pragma once

// A backend without Python: what it "runs" is a word that says how the cell behaves. Records what
// it was asked for. The real one is tested by the backend contract and the transcripts.

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <deque>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "async/task_group.hpp"
#include "mcp/call.hpp"
#include "sandbox/sandbox.hpp"
#include "sandbox/session_store.hpp"
#include "tools/sessions.hpp"
#include "tools/snapshots.hpp"
#include "tools/tools.hpp"

namespace fake {

using async::awaitable;

// The cells it knows: "ok", "print TEXT", "raise", "sleep" (until stopped), "die", "ask PROMPT",
// "talk" (prints a line, then sleeps), "set NAME VALUE", "get NAME".
class Sandbox final : public sandbox::Sandbox {
 public:
  Sandbox(struct Backend& backend, sandbox::SandboxSpec spec);
  ~Sandbox() override;
  awaitable<void> run(sandbox::Execution& execution) override;
  awaitable<void> answer(sandbox::Execution& execution, std::optional<std::string> value) override;
  bool alive() const override { return alive_; }
  std::string description() const override { return "Fake Python"; }
  sandbox::Files& files() override { return *files_; }
  sandbox::Usage usage() override { return {}; }
  awaitable<void> close() override;

  // An image is a directory with one file, which has the variables.
  awaitable<sandbox::FreezeReport> freeze(std::filesystem::path image,
                                          sandbox::FreezeOptions options) override;
  void thaw(const std::filesystem::path& image);
  sandbox::Start how_started() const override { return how_started_; }

  void die() { alive_ = false; }
  std::string refuses_to_freeze;  // even if what is lost does not matter

 private:
  struct Backend& backend_;
  std::string template_;
  std::unique_ptr<sandbox::Files> files_;
  std::optional<std::string> answer_;
  bool alive_ = true;
  int number_ = 0;
  std::map<std::string, std::string> variables_;
  sandbox::Start how_started_ = sandbox::Start::cold;
};

struct Backend final : sandbox::Backend {
  awaitable<std::unique_ptr<sandbox::Sandbox>> start(sandbox::SandboxSpec spec) override;
  std::unique_ptr<sandbox::Files> files(const sandbox::SandboxSpec& spec) override;
  awaitable<std::unique_ptr<sandbox::Sandbox>> thaw(std::filesystem::path image,
                                                    sandbox::SandboxSpec spec,
                                                    sandbox::Thaw reason) override;
  sandbox::Capabilities capabilities() const override;
  awaitable<std::vector<sandbox::Layer>> check() override;

  boost::asio::thread_pool* real_files = nullptr;  // set: workspaces are those of this machine
  std::string refusal;              // start() throws StartError with it, if not empty
  std::vector<std::string> cells;   // that were run, of all sandboxes
  std::vector<Sandbox*> sandboxes;  // that live
  int starts = 0;
  bool images = false;            // whether kernels can be frozen
  std::string freeze_refusal;     // FreezeError with it, if not empty; unless allow_lost
  std::vector<std::string> lost;  // what images do not carry
  std::chrono::milliseconds freeze_takes{0};
  bool freezes_uncancelled = false;  // a freeze goes on when its caller is cancelled, as real ones
  boost::asio::thread_pool* freezing = nullptr;  // where it does so
  int freezes = 0;
  std::vector<sandbox::Thaw> thaws;
};

// A call as the tools see it, without a client.
class Call final : public mcp::Call {
 public:
  explicit Call(const mcp::Peer& peer) : peer_(peer) {}
  const mcp::Peer& peer() const override { return peer_; }
  mcp::Revision revision() const override { return mcp::Revision::v2025_11_25; }
  const boost::json::object& meta() const override { return meta_value; }
  const std::string& origin() const override { return origin_value; }
  bool wants_progress() const override { return wants_progress_value; }
  void progress(double value, std::optional<double> total, std::string message) override;
  void log(mcp::LogLevel, std::string) override {}
  bool serves(std::string_view) const override { return answer_value.has_value(); }
  awaitable<mcp::InputResponses> ask(mcp::InputRequests requests, std::optional<std::string> state,
                                     std::chrono::milliseconds limit) override;
  const std::optional<mcp::Resumed>& resumed() const override { return resumed_value; }
  void hang_up() override {}

  boost::json::object meta_value;
  std::string origin_value;
  bool wants_progress_value = false;
  std::vector<std::pair<double, std::string>> progress_made;
  std::optional<mcp::Answer> answer_value;  // none: this client cannot ask
  std::chrono::milliseconds answers_after{0};
  bool is_modern = false;
  std::vector<std::string> questions;
  std::optional<mcp::Resumed> resumed_value;

 private:
  const mcp::Peer& peer_;
};

// One server's worth of sessions over the fake backend, in a state directory of its own.
class World {
 public:
  explicit World(tools::SessionPolicy policy = {});
  ~World();

  // Runs a coroutine to its end, at most 20 s, and returns what it gives. Throws what it throws.
  template <class T>
  T wait(awaitable<T> work) {
    std::optional<T> result;
    std::exception_ptr failure;
    run(keep(std::move(work), result), failure);
    if (failure) std::rethrow_exception(failure);
    return std::move(*result);
  }
  void wait(awaitable<void> work);

  // Calls a tool. ToolError and DecodeError become a result with isError, as the server does it.
  mcp::CallToolResult call(const std::string& tool, boost::json::object arguments);
  awaitable<mcp::CallToolResult> call(mcp::Call& call, const std::string& tool,
                                      boost::json::object arguments);
  // The same call many times at once.
  std::vector<mcp::CallToolResult> call_together(int count, const std::string& tool,
                                                 boost::json::object arguments);
  // Cancels the work after a time, as a caller does who gives up; what it throws then is dropped.
  void give_up_after(std::chrono::milliseconds limit, awaitable<void> work);
  void give_up_after(std::chrono::milliseconds limit, const std::string& tool,
                     boost::json::object arguments);
  std::vector<mcp::Tool> tools();

  boost::asio::io_context io{1};
  boost::asio::thread_pool pool{1};
  std::filesystem::path directory;    // of the state; deleted with the world
  std::filesystem::path upload_root;  // what upload_file may read; empty: nothing
  std::uint64_t upload_max = 1 << 20;
  Backend backend;
  sandbox::SessionStore store;
  sandbox::SnapshotStore snapshot_store;
  tools::Sessions sessions;
  tools::Snapshots snapshots{pool, backend, snapshot_store, sessions};
  tools::Tickets tickets{sessions, ticket_limits()};
  mcp::Peer peer;

 private:
  tools::TicketLimits ticket_limits() const;
  template <class T>
  static awaitable<void> keep(awaitable<T> work, std::optional<T>& result) {
    result.emplace(co_await std::move(work));
  }
  void run(awaitable<void> work, std::exception_ptr& failure);
};

// All text blocks, one after the other.
std::string text_of(const mcp::CallToolResult& result);

}  // namespace fake
