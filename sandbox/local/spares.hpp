#pragma once

#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <optional>

#include "sandbox/local/bring_up.hpp"

namespace sandbox::local {

// Sandboxes that wait for their session, each with an empty workspace of its own.
class Spares {
 public:
  // How one is brought up; null: not ahead of time.
  using Make = std::function<awaitable<std::unique_ptr<LocalSandbox>>(SandboxSpec)>;

  // All but `make` outlive it.
  Spares(boost::asio::any_io_executor executor, boost::asio::thread_pool& pool,
         const BackendOptions& options, Make make);

  // Makes as many as are wanted for this spec; never throws.
  awaitable<void> fill(SandboxSpec spec);

  // One for an equal spec, whose workspace now has the name that `spec` says; null if there is
  // none. One that is being made just now is waited for.
  awaitable<std::unique_ptr<LocalSandbox>> take(SandboxSpec spec);

  // Ends those that nobody took in time; until cancelled.
  awaitable<void> expire();
  // Ends all.
  awaitable<void> close();

 private:
  struct Spare {
    SandboxSpec spec;
    Fd held;  // locked: else the next server removes the workspace
    std::unique_ptr<LocalSandbox> sandbox;
    std::chrono::steady_clock::time_point made;
  };
  // These two block.
  std::optional<Spare> place(SandboxSpec spec) const;
  void sweep() const;
  bool is_wanted(const SandboxSpec& spec) const;
  awaitable<void> bring_up(Spare& spare);
  awaitable<void> remove(const Spare& spare);
  awaitable<void> end(Spare spare);

  boost::asio::thread_pool& pool_;
  const BackendOptions& options_;
  Make make_;
  bool swept_ = false;
  std::list<Spare> ready_;
  std::list<SandboxSpec> making_;
  async::Changed changed_;
};

}  // namespace sandbox::local
