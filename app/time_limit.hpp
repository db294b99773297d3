#pragma once

#include <chrono>

namespace app {

// Whatever holds us up then, a disk that does not answer say: `limit` from now the process ends,
// with a line on stderr and exit code 1, and every sandbox ends with it. For the process's own end.
void end_within(std::chrono::milliseconds limit);

}  // namespace app
