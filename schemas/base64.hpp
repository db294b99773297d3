#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace schemas {

// RFC 4648 section 4: standard alphabet, padded, no line breaks.
std::string base64_encode(std::string_view bytes);

// nullopt for anything else, bits left over after the last byte included; white space between the
// characters is accepted.
std::optional<std::string> base64_decode(std::string_view text);

}  // namespace schemas
