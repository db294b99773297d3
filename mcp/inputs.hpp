#pragma once

// What a handler may ask of its client: the user (elicitation), the client's model (sampling), the
// user's directories (roots).

#include <boost/json.hpp>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "mcp/era.hpp"
#include "mcp/protocol_inputs.hpp"

namespace mcp {

// By a name of the handler's own, unique within its request.
using InputRequests = std::map<std::string, InputRequest>;
// The client's results by the same names, in the shape of their method's result. One that is
// missing was refused, failed, or never came.
using InputResponses = std::map<std::string, boost::json::object>;

// The user's answer to a form.
struct Answer {
  enum class Action { accept, decline, cancel };
  Action action = Action::cancel;
  boost::json::object content;  // fits the form; empty unless accepted
};

InputRequest elicitation(const ElicitParams& form);
InputRequest sampling(const CreateMessageParams& params);
InputRequest list_roots();

// Whether a client with these capabilities serves requests of `method`.
bool serves(const boost::json::object& capabilities, std::string_view method, Revision revision);
// What these two functions look at: all that is worth keeping of a client's capabilities.
boost::json::object essentials(const boost::json::object& capabilities);
// The ClientCapabilities that `requests` need and these lack.
boost::json::object lacking(const boost::json::object& capabilities, const InputRequests& requests,
                            Revision revision);

// The result, if it fits what was requested. Throws schemas::DecodeError below `path`.
boost::json::object checked_response(const InputRequest& request, const boost::json::value& result,
                                     const std::string& path);

// The responses that a modern client sent along; nullopt if one is missing. Others are ignored.
// Throws Error (invalid_params) for one that does not fit.
std::optional<InputResponses> read_responses(const InputRequests& requests,
                                             const boost::json::object& given);

// The answer to the form that was asked for as `name`; a missing one counts as Action::cancel.
Answer answer_in(const InputResponses& responses, const std::string& name);

}  // namespace mcp
