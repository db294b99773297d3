#include "sandbox/local/image_probe.hpp"

#include <sys/utsname.h>

#include <cstdio>

#include "sandbox/local/procfs.hpp"

namespace sandbox::local {

namespace {

// pidfd_getfd, PTRACE_GET_RSEQ_CONFIGURATION and MADV_POPULATE_WRITE are all there from then on.
constexpr int kOldestMajor = 5, kOldestMinor = 15;

bool is_too_old() {
  utsname name{};
  int major = 0, minor = 0;
  if (uname(&name) == -1 || std::sscanf(name.release, "%d.%d", &major, &minor) != 2) return false;
  return major < kOldestMajor || (major == kOldestMajor && minor < kOldestMinor);
}

}  // namespace

std::string image_remedy(const std::filesystem::path& proc_sys) {
#ifndef __x86_64__
  return "Images need an x86-64 processor. Sessions start cold here and cannot be put on disk.";
#endif
  if (is_too_old())
    return "Images need Linux 5.15 or newer. Sessions start cold here and cannot be put on disk.";
  if (read_proc_file(proc_sys / "kernel/yama/ptrace_scope") == "3\n")
    return "Yama forbids all ptrace, by which kernels are frozen: remove "
           "kernel.yama.ptrace_scope=3 "
           "from /etc/sysctl.d and restart the machine (it cannot be taken back before).";
  return "In a container, allow ptrace and process_vm_readv: start it with `--security-opt "
         "seccomp=unconfined`. Sessions work without images; they start slowly and end with the "
         "server.";
}

Layer huge_pages(const std::filesystem::path& file) {
  Layer layer;
  layer.name = "large pages";
  layer.required = false;
  std::string modes = read_proc_file(file);
  bool allowed = modes.find("[always]") != modes.npos || modes.find("[madvise]") != modes.npos;
  layer.state = allowed ? Layer::State::achieved : Layer::State::weaker;
  if (!modes.empty() && modes.back() == '\n') modes.pop_back();
  layer.detail = modes.empty() ? "this kernel has no transparent huge pages" : modes;
  if (!allowed)
    layer.remedy =
        "sessions with much data wake slowly: `echo madvise | sudo tee " + file.string() + "`";
  return layer;
}

}  // namespace sandbox::local
