#pragma once

// The JSON-RPC 2.0 messages we send.

#include <boost/json.hpp>
#include <string_view>

#include "mcp/error.hpp"

namespace mcp {

boost::json::object result_reply(const boost::json::value& id, boost::json::object result);

// An `id` of null means that there is none to answer to: the member is left out then, as the newer
// schemas allow and the SDKs' clients accept.
boost::json::object error_reply(const boost::json::value& id, ErrorCode code, std::string_view text,
                                boost::json::value data = nullptr);

boost::json::object notification(std::string_view method, boost::json::object params);

}  // namespace mcp
