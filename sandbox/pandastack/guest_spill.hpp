#pragma once

#include <string>

#include "sandbox/files.hpp"
#include "sandbox/kernel.hpp"

namespace sandbox::pandastack {

// Keeps an execution's whole text in memory, and puts it into the guest when it has ended.
class GuestSpill final : public Spill {
 public:
  GuestSpill(Files& files, std::uint64_t cap) : files_(files), cap_(cap) {}
  awaitable<void> append(const Execution& execution, std::string bytes) override;
  awaitable<std::string> finish(const Execution& execution) override;

 private:
  Files& files_;
  std::uint64_t cap_;
  std::string text_;
  bool cut_ = false;
};

}  // namespace sandbox::pandastack
