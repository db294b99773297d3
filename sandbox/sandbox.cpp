#include "sandbox/sandbox.hpp"

namespace sandbox {

// What a backend without images answers (Capabilities::Snapshot::none).

awaitable<FreezeReport> Sandbox::freeze(std::filesystem::path, FreezeOptions) {
  throw FreezeError("this backend cannot save a kernel's memory");
  co_return FreezeReport();
}

awaitable<std::unique_ptr<Sandbox>> Backend::thaw(std::filesystem::path, SandboxSpec, Thaw) {
  throw ThawError("this backend cannot bring a kernel's memory back");
  co_return nullptr;
}

void Backend::prepare(SandboxSpec) {}

awaitable<void> Backend::stop() { co_return; }

}  // namespace sandbox
