#pragma once

#include "schemas/base64.hpp"

namespace mcp {

using schemas::base64_decode;
using schemas::base64_encode;

}  // namespace mcp
