#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "transport/http/event_stream.hpp"
#include "transport/http/exchange.hpp"
#include "transport/http/mcp_limits.hpp"

namespace transport::http {

// The form in which a stream's messages become a response.
struct Delivery {
  bool json = true;      // the client accepts one JSON body
  bool events = true;    // ... an event stream
  bool ids = false;      // events have ids: the client may come back with the last one it got
  bool priming = false;  // begins with an id without a message, and says when to come back
  std::vector<std::pair<std::string, std::string>> headers;  // of either form
  int (*status)(std::int64_t error) = nullptr;  // of a JSON body that is an error; null: 200
};

// The response to a POST. One JSON body when the answer comes first and soon; an event stream, its
// headers sent at once, as soon as something else is to be said, or after limits.json_wait. True
// when all of it has been sent, false when the client is gone.
awaitable<bool> deliver(Exchange& exchange, EventStream::Reader& reader, const Delivery& delivery,
                        const McpLimits& limits);

// The response is an event stream whatever comes.
awaitable<bool> deliver_events(Exchange& exchange, EventStream::Reader& reader,
                               const Delivery& delivery, const McpLimits& limits);

// Writes one event after the other, and comments while there is none, until the end of the stream.
// The response has begun, and is not ended.
awaitable<bool> write_events(Exchange& exchange, EventStream::Reader& reader, bool ids,
                             std::chrono::milliseconds comment_interval);

// The head of an event stream's response.
Response event_stream_head();

// `number` 0 is the beginning of the stream.
std::string event_id(const std::string& stream, std::uint64_t number);

}  // namespace transport::http
