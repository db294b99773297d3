#pragma once

#include <string>

namespace mcp {

// 130 random bits from the kernel as 26 characters of [a-z2-7]: fit for a bearer secret, a header,
// a path and a file's name. Throws std::system_error.
std::string random_id();

}  // namespace mcp
