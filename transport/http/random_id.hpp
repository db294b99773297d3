#pragma once

#include <string>

namespace transport::http {

// 128 random bits from the kernel in hexadecimal: fit for a bearer secret, and for a header.
std::string random_id();

}  // namespace transport::http
