#pragma once

#include <cstddef>
#include <string_view>

namespace schemas {

// The length of the well-formed UTF-8 sequence that `bytes` starts with (Unicode, table 3-7): 1 to
// 4; 0 if there is none, as for an overlong form, a surrogate, a sequence cut short, or no bytes.
std::size_t utf8_sequence(std::string_view bytes);

}  // namespace schemas
