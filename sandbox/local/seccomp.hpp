#pragma once

#include <string>

namespace sandbox::local {

// The system calls a sandbox may make, as classic BPF for bwrap's --add-seccomp-fd; built on first
// use. Two programs, because the kernel takes the stricter answer of all filters while one
// libseccomp filter cannot say "this call, but not with these arguments". Throw StartError when
// libseccomp refuses.

// What CPython, numpy, pandas, pyarrow, matplotlib, subprocess, multiprocessing and the image
// loader (PR_SET_MM, seccomp, rseq, rt_sigreturn, clone) need. No new namespaces; sockets of
// AF_UNIX, AF_INET and AF_INET6 only. Everything else answers EPERM, but clone3 (its flags lie in
// memory, where no filter can see them) and whatever newer calls a C library tries first answer
// ENOSYS, so that it falls back. Another architecture's calls (32 bit, x32) answer EPERM.
// Unless a control group counts the sandbox's memory, memfd_create and shmget are refused as well:
// they make memory that belongs to no process, which a watchdog cannot see (watchdog.hpp).
const std::string& allowed_calls(bool memory_is_counted);

// ioctl, which has too many harmless requests to list, without those that type into a terminal
// (TIOCSTI, TIOCLINUX).
const std::string& denied_requests();

}  // namespace sandbox::local
