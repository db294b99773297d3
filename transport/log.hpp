#pragma once

#include <chrono>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

namespace transport {

enum class LogFormat { text, json };

// RFC 3339, UTC, with milliseconds.
std::string time_text(std::chrono::system_clock::time_point time);

// Makes the program's log, written to `fd` as LogSink does. `level` is spdlog's name of one.
// As JSON each line is an object with `time` (RFC 3339, UTC), `level` and `message`; an event has
// its name in `event` and its fields in place of a message.
void start_log(int fd, const std::string& level, LogFormat format);

struct Field {
  std::string_view name;  // ours: a letter and [a-z_]
  std::string value;      // may be the client's: escaped, and cut to 256 bytes
};

// Whether events are logged at all: they take work to put together.
bool logs_events();

// Logs what has left a task that should have dealt with it; for an async::TaskGroup. That the task
// was cancelled (a system_error) is no news.
void log_defect(std::exception_ptr failure);

// Logs something that happened, at level info, in one line: `request id=… method=POST`, or the same
// as JSON. Fields without a value are left out. No secrets, no code.
void log_event(std::string_view event, const std::vector<Field>& fields);

}  // namespace transport
