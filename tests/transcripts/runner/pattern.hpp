#pragma once

#include <boost/json.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace transcripts {

namespace json = boost::json;

// Values that placeholders stand for, by name.
using Captures = std::map<std::string, json::value, std::less<>>;

// How `got` differs from `pattern`, at the first place, or nothing. Binds new placeholders.
std::optional<std::string> difference(const json::value& pattern, const json::value& got,
                                      Captures& captures);

// The text with its bound placeholders replaced by their values.
std::string filled_in(std::string_view text, const Captures& captures);

// The opposite, for UPDATE_GOLDEN: captured values that are long enough to be no coincidence.
std::string with_placeholders(std::string text, const Captures& captures);

}  // namespace transcripts
