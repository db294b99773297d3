#pragma once

// Makes what we say fit the revision that the client speaks (facts: which field exists since when).

#include <boost/json.hpp>

#include "mcp/era.hpp"
#include "mcp/protocol.hpp"

namespace mcp {

// How long and how widely a modern client may keep a result. none: not a cacheable one.
enum class Caching { none, for_everyone, only_now };

// Remove the members that `revision` does not know.
void fit(Implementation& implementation, Revision revision);
void fit(ToolInfo& tool, Revision revision);
void fit(Resource& resource, Revision revision);
void fit(ResourceTemplate& resource_template, Revision revision);
void fit(PromptInfo& prompt, Revision revision);
// A block that `revision` does not know becomes a text that says so.
void fit(Content& content, Revision revision);

// What every result of the modern era carries: resultType (unless already there), who we are, and
// the caching hints. Does nothing to a legacy result.
void complete(boost::json::object& result, Revision revision, Caching caching,
              const Implementation& self);

}  // namespace mcp
