#pragma once

#include <boost/asio/thread_pool.hpp>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>

#include "sandbox/local/backend.hpp"
#include "sandbox/local/templates.hpp"
#include "tests/sandbox/fake_kernel.hpp"
#include "tests/support/scratch.hpp"

// A backend and a sandbox of it, for the tests that run real kernels.
namespace sandbox {

using ::testing::Scratch;

// PYKEEP_TEST_PYTHON, else the system's; without IPython in it these tests fail, they do not skip.
inline Template test_python(const std::filesystem::path& scratch) {
  const char* given = std::getenv("PYKEEP_TEST_PYTHON");
  return local::Templates(scratch / "templates").find(given ? given : "system");
}

inline awaitable<void> start(Backend& backend, SandboxSpec spec,
                             std::unique_ptr<Sandbox>& sandbox) {
  sandbox = co_await backend.start(std::move(spec));
}

// Outputs in order: text as it is, results and errors in brackets.
inline std::string story(const Execution& execution) {
  std::string out;
  for (const Output& output : execution.outputs) {
    if (const auto* text = std::get_if<Text>(&output.what)) out += text->bytes;
    if (const auto* shown = std::get_if<Display>(&output.what)) {
      const auto* plain = shown->data.if_contains("text/plain");
      if (shown->binary.empty() && plain) out += "[" + std::string(plain->as_string()) + "]";
      for (const auto& binary : shown->binary) out += "[" + binary.mime + "]";
    }
    if (const auto* error = std::get_if<PythonError>(&output.what)) out += "[" + error->name + "]";
  }
  return out;
}

// A sandbox of some backend, and what was run in it.
struct Desk {
  std::filesystem::path new_workspace(const std::string& name) {
    std::filesystem::create_directory(scratch.path / name);
    return scratch.path / name;
  }

  Execution& begin(std::string code, std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
    auto& execution = executions.emplace_back(io.get_executor(), "e", std::move(code));
    execution.timeout = timeout;
    return execution;
  }
  Execution& run(std::string code, std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
    return run_in(*sandbox, std::move(code), timeout);
  }
  Execution& run_in(Sandbox& one, std::string code,
                    std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
    Execution& execution = begin(std::move(code), timeout);
    run_to_end(io, one.run(execution), std::chrono::seconds(90));
    return execution;
  }
  std::string story(const Execution& execution) { return sandbox::story(execution); }

  Scratch scratch;
  boost::asio::io_context io{1};
  boost::asio::thread_pool pool{2};
  SandboxSpec spec;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Sandbox> sandbox;
  std::deque<Execution> executions;

 protected:
  ~Desk() {
    if (sandbox) run_to_end(io, sandbox->close());
    if (backend) run_to_end(io, backend->stop(), std::chrono::seconds(10));
  }
};

// On this machine.
struct Place : Desk {
  explicit Place(Limits limits = Limits(), local::BackendOptions wanted = {})
      : options(std::move(wanted)) {
    spec.name = "contract";
    spec.workspace = new_workspace("workspace");
    spec.python = test_python(scratch.path);
    spec.limits = limits;
    options.kernel_root = scratch.path / "kernel";
    backend = local::make_backend(io.get_executor(), pool, options);
    run_to_end(io, start(*backend, spec, sandbox), std::chrono::seconds(90));
  }
  static bool possible() { return true; }

  local::BackendOptions options;
};

}  // namespace sandbox
