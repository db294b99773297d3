#pragma once

#include <boost/json.hpp>
#include <optional>

#include "transport/http/exchange.hpp"

namespace transport::http {

// Which era a posted message belongs to. Each goes by its own claim: nothing is remembered of the
// connection, and a client may try one era and then the other.
struct Step {
  enum class To {
    refused,
    accepted,  // a modern notification: there is none that means anything over HTTP
    legacy,
    modern,  // a request, its envelope sound and its version ours
  };
  To to = To::refused;
  Response refusal;  // when refused
};

// `message` is any JSON value. The headers of a modern request other than its version are not
// looked at yet.
Step classify(const Request& request, const boost::json::value& message);

}  // namespace transport::http
