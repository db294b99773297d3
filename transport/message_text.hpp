#pragma once

#include <boost/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace transport {

// Whether the line holds nothing to answer (blank, or a byte order mark alone).
bool is_blank(std::string_view line);

// The JSON value in one line, or nothing if it is not JSON, is not UTF-8, nests deeper than 64 or
// has more than 100,000 values: so it takes no more memory than its text and about 10 MiB. A byte
// order mark before it is ignored (PowerShell writes one).
//
// A lone surrogate escape such as \ud800 reads as U+FFFD: Python clients send what they were given,
// and a -32700 carries no id, so that such a client would wait for its answer for ever.
std::optional<boost::json::value> parse_message(std::string text);

}  // namespace transport
