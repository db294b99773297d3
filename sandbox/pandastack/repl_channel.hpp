#pragma once

#include <memory>

#include "sandbox/pandastack/client.hpp"
#include "sandbox/pandastack/remote_channel.hpp"

namespace sandbox::pandastack {

// The vendor's own Python as a kernel, for operators who ask for it (--pandastack-carrier repl).
// Its limits: output comes when a cell has ended, stdout before stderr before results; a cell
// cannot be interrupted, only its kernel ended; no input(), no magics, no top-level await; what a
// child process prints breaks its protocol, and with that the kernel. A call that fails ends the
// kernel, since nothing tells then what it did.
std::unique_ptr<RemoteChannel> make_repl_channel(boost::asio::any_io_executor executor,
                                                 std::shared_ptr<Client> client, std::string vm);

// A cell as that kernel can take it: one that is not ASCII becomes an expression that is. (It
// counts bytes on one side and characters on the other.)
std::string repl_cell(std::string_view code);

}  // namespace sandbox::pandastack
