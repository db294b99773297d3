#pragma once

#include <cstdint>
#include <memory>

#include "sandbox/kernel_channel.hpp"
#include "sandbox/local/process.hpp"

namespace sandbox::local {

// The kernel link over a sandboxed process. `memory_limit` is only for the words of Exit::cause.
//
// next() reads nothing before it is asked, so a kernel whose output is not taken blocks on its
// pipes. poll() may be called while a next() waits.
std::unique_ptr<KernelChannel> make_kernel_channel(boost::asio::any_io_executor executor,
                                                   std::shared_ptr<Process> process,
                                                   std::uint64_t memory_limit);

}  // namespace sandbox::local
