#pragma once

#include <cstdint>
#include <string>

namespace tools {

// 130 random bits from the kernel as 26 characters of [a-z2-7]: fit for a bearer secret.
std::string random_id();

std::int64_t now_seconds();  // since the epoch

}  // namespace tools
