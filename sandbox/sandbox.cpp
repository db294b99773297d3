#include "sandbox/sandbox.hpp"

namespace sandbox {

const char* name_of(Thaw reason) {
  switch (reason) {
    case Thaw::snapshot:
      return "snapshot";
    case Thaw::wake:
      return "wake";
    case Thaw::fork:
      return "fork";
  }
  return "";
}

// What a backend without images answers (Capabilities::Snapshot::none).

awaitable<FreezeReport> Sandbox::freeze(std::filesystem::path, FreezeOptions) {
  throw FreezeError("this backend cannot save a kernel's memory");
  co_return FreezeReport();
}

awaitable<std::unique_ptr<Sandbox>> Backend::thaw(std::filesystem::path, SandboxSpec, Thaw) {
  throw ThawError("this backend cannot bring a kernel's memory back");
  co_return nullptr;
}

// What one answers that keeps everything on this machine, and nothing beyond the server's end.

awaitable<bool> Sandbox::leave() { co_return false; }

awaitable<std::unique_ptr<Sandbox>> Backend::adopt(SandboxSpec) { co_return nullptr; }

awaitable<void> Backend::forget(SandboxSpec) { co_return; }

awaitable<void> Backend::discard(std::filesystem::path) { co_return; }

void Backend::prepare(SandboxSpec) {}

void Backend::wind_down() {}

awaitable<void> Backend::stop() { co_return; }

}  // namespace sandbox
