#pragma once

#include <boost/json.hpp>

#include "mcp/request.hpp"
#include "mcp/server.hpp"
#include "mcp/shape.hpp"

namespace mcp {

// One row of the method table.
struct Server::Method {
  enum class Since { both, legacy, modern };  // the eras that have it
  enum class Needs { nothing, resources };    // the capability that must have been offered

  awaitable<boost::json::object> (*run)(Server&, Request&);
  Since eras;
  Caching caching = Caching::none;
  Needs needs = Needs::nothing;
};

}  // namespace mcp
