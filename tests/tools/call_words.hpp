#pragma once

// What tests of calls to tools are written with: arguments in, what a result says out.

#include <boost/json.hpp>
#include <string>

#include "mcp/protocol.hpp"

namespace fake {

inline boost::json::object code(std::string text) {
  boost::json::object arguments;
  arguments["code"] = std::move(text);
  return arguments;
}

inline boost::json::object with_session(boost::json::object arguments, const std::string& handle) {
  arguments["session"] = handle;
  return arguments;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The handle of the session a result came from.
inline std::string session_of(const mcp::CallToolResult& result) {
  const boost::json::object& execution = result._meta->at("io.pykeep/execution").as_object();
  return std::string(execution.at("session").as_string());
}

}  // namespace fake
