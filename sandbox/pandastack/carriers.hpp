#pragma once

#include <memory>
#include <string>

#include "sandbox/pandastack/client.hpp"
#include "sandbox/pandastack/relay.hpp"
#include "sandbox/pandastack/vm_records.hpp"

namespace sandbox::pandastack {

// What carries requests to the relay.
enum class CarrierKind {
  automatic,  // the proxy, unless it turns out not to be there
  proxy,      // the API's reverse proxy to the relay's port: binary, and one request a cell
  exec,       // a command in the guest whose output is streamed: base64, and a Python start each
  repl,       // none: the vendor's own Python instead of our kernel (repl_channel.hpp)
};

// Each refers to the VM as it is when it is asked: its port and secret may change. Both outlive it.
std::unique_ptr<Carrier> make_proxy_carrier(Client& client, const Vm& vm);
std::unique_ptr<Carrier> make_exec_carrier(Client& client, const Vm& vm);

// One of the two; `kind`, which outlives it, becomes `exec` once the proxy was not there several
// times and never was before.
std::unique_ptr<Carrier> make_carrier(Client& client, const Vm& vm, CarrierKind& kind);

// A word for a shell: nothing in it means anything.
std::string shell_word(std::string_view text);

}  // namespace sandbox::pandastack
