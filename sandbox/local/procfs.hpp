#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sandbox/local/process.hpp"

namespace sandbox::local {

// What /proc says about processes of this machine. Processes come and go: what has gone is left
// out.

std::string read_proc_file(const std::filesystem::path& file);  // empty if it cannot be read

// In clock ticks since boot: with the pid, it names one process for good. 0: there is none.
std::uint64_t start_time(pid_t process);

struct Member {
  pid_t pid = 0;        // here
  pid_t inner_pid = 0;  // in its own pid namespace
};

// Every process in the pid namespace with this inode number.
std::vector<Member> members_of(ino_t pid_namespace);

// A handle on a process of that namespace; empty if it has ended, even if its number was given to
// another process meanwhile.
Fd hold_member(pid_t process, ino_t pid_namespace);

void send_signal(const Fd& pidfd, int signal);  // a process that has ended is none of our concern

struct Consumption {
  std::uint64_t memory = 0;  // bytes of it alone, without what it maps from files
  double cpu_seconds = 0;    // with children it has waited for
  std::uint64_t threads = 0;
};
Consumption consumption_of(pid_t process);

}  // namespace sandbox::local
