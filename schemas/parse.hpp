#pragma once

#include <boost/json.hpp>
#include <cstddef>
#include <string_view>

namespace schemas {

// As boost::json::parse, for texts that others wrote. A number that a double cannot hold is an
// error, too (RFC 8259, section 6, leaves the range to us): Boost.JSON reads 1e400 as infinity and
// 0e400 as NaN, and writes neither as JSON.
boost::json::value parse(std::string_view text, boost::system::error_code& malformed,
                         std::size_t max_depth = 32);

}  // namespace schemas
