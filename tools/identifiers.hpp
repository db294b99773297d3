#pragma once

#include <cstdint>
#include <string>

#include "mcp/random_id.hpp"

namespace tools {

using mcp::random_id;

// SHA-256 in hexadecimal digits: what is kept of a text that is a secret, or not ours to keep.
std::string hash_of(const std::string& text);

std::int64_t now_seconds();  // since the epoch

}  // namespace tools
