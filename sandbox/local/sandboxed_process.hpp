#pragma once

#include <memory>
#include <optional>

#include "sandbox/local/cgroup.hpp"
#include "sandbox/local/launcher.hpp"
#include "sandbox/local/process.hpp"

namespace sandbox::local {

// What launch() made, handed over to the Process that it returns.
struct Started {
  Spawned outer;  // bwrap, outside
  Fd init;        // pidfd of pid 1 inside
  ino_t pid_namespace = 0;
  std::unique_ptr<Cgroup> cgroup;
  Fd held_id;  // see hold_id(); empty when the server is not root
  Limits limits;
  Fd link, out, err;
  Fd status;  // held open: bwrap writes its last status there, or dies of SIGPIPE
};

std::unique_ptr<Process> make_process(Started started);

// Reaps sandboxes that were killed and not waited for, and removes their control groups, as far as
// they have ended by now.
void bury_the_dead();

}  // namespace sandbox::local
