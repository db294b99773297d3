#pragma once

#include <boost/json.hpp>

#include "mcp/request.hpp"
#include "mcp/server.hpp"
#include "mcp/shape.hpp"

namespace mcp {

// One row of the method table.
struct Server::Method {
  enum class Since { both, legacy, modern };  // the eras that have it
  // What must have been offered.
  enum class Needs { nothing, resources, resource_changes, changes, prompts, completion };

  awaitable<boost::json::object> (*run)(Server&, Request&);
  Since eras;
  Caching caching = Caching::none;
  Needs needs = Needs::nothing;
  bool asks = false;  // may be answered with `input_required`
};

}  // namespace mcp
