#pragma once

#include <chrono>
#include <string>

#include "sandbox/kernel_channel.hpp"

namespace sandbox::pandastack {

// A kernel that does not end with its channel. Destroying it lets go of the kernel.
class RemoteChannel : public KernelChannel {
 public:
  // Nothing is sent any more, and Closed comes.
  virtual void let_go(std::string because) = 0;
  // Waits for signals that are under way, at most `limit`.
  virtual awaitable<void> settle(std::chrono::milliseconds limit) = 0;
};

}  // namespace sandbox::pandastack
