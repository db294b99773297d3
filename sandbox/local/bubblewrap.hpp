#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sandbox/local/launcher.hpp"
#include "sandbox/local/mounts.hpp"

namespace sandbox::local {

// Where bwrap is; looked for at the usual absolute paths, since a server may have no PATH. Throws
// StartError with how to install it.
std::string find_bubblewrap();

// The descriptors that bwrap is given besides those of the program, by number.
enum BwrapDescriptor : int {
  kArguments = 4,  // its options: none of them shows in a process list, and names are only data
  kStatus,         // it writes {"child-pid": N, ...} there, then {"exit-code": N}
  kBlock,          // it forks the program once there is something to read
  kAllowedCalls,
  kDeniedRequests,
  kFirstFile,  // then one for each of View::files, and then those of Images
};

struct BwrapInput {
  const View& view;
  const std::vector<std::pair<std::string, std::string>>& environment;
  const Limits& limits;
  bool network = false;
  bool staged = false;  // sources are at staged_path(index of the bind)
};

// bwrap's options, each ended by a NUL byte, as it reads them from kArguments.
std::string bwrap_options(const BwrapInput& input);

// What to tell the reader when bwrap ended before the program ran: its own words, and the remedy
// where its words are known.
std::string explain_bwrap(const std::string& words);

}  // namespace sandbox::local
