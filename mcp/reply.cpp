#include "mcp/reply.hpp"

namespace mcp {

namespace json = boost::json;

namespace {

json::object reply(const json::value& id) {
  json::object message;
  message["jsonrpc"] = "2.0";
  if (!id.is_null()) message["id"] = id;
  return message;
}

}  // namespace

json::object result_reply(const json::value& id, json::object result) {
  json::object message = reply(id);
  message["result"] = std::move(result);
  return message;
}

json::object error_reply(const json::value& id, ErrorCode code, std::string_view text,
                         json::value data) {
  json::object error;
  error["code"] = static_cast<int>(code);
  error["message"] = text;
  if (!data.is_null()) error["data"] = std::move(data);
  json::object message = reply(id);
  message["error"] = std::move(error);
  return message;
}

json::object notification(std::string_view method, json::object params) {
  json::object message;
  message["jsonrpc"] = "2.0";
  message["method"] = method;
  message["params"] = std::move(params);
  return message;
}

}  // namespace mcp
