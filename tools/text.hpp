#pragma once

// Making bytes from a sandbox fit for a model to read. All of it is linear in its input and total:
// any bytes at all give valid UTF-8.

#include <cstdint>
#include <string>
#include <string_view>

#include "sandbox/bounded_text.hpp"

namespace tools {

// Valid UTF-8: every byte that is not part of a well-formed sequence becomes U+FFFD; so do encoded
// surrogates and NUL and the other control characters but tab and newline.
std::string valid_utf8(std::string_view bytes);

// Whether it is text: well-formed UTF-8 without NUL.
bool is_text(std::string_view bytes);

// Without the bytes at the end that begin a character which is not there.
std::string_view without_cut_end(std::string_view bytes);

// What a terminal would show of it, as far as text can: CSI and OSC sequences removed, and of a
// line that "\r" overwrote only the last version kept ("\r\n" is a line end).
std::string plain_text(std::string_view bytes);

// plain_text() in one line, for names and titles that code in the sandbox has chosen.
std::string one_line(std::string_view bytes);

// The number of characters (code points) of valid UTF-8.
std::size_t characters(std::string_view utf8);

// The first (last) `count` characters.
std::string_view first_characters(std::string_view utf8, std::size_t count);
std::string_view last_characters(std::string_view utf8, std::size_t count);

std::string with_thousands(std::uint64_t number);  // 22,000,001
using sandbox::size_text;

}  // namespace tools
