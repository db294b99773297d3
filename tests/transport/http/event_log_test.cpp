#include "transport/http/event_log.hpp"

#include <doctest/doctest.h>

namespace http = transport::http;

namespace {

// Reads to the end: the events' texts.
std::string drain(http::EventLog& log) {
  std::string out;
  for (; const http::Event* event = log.next(); log.advance()) out += event->text;
  return out;
}

}  // namespace

TEST_CASE("a log that is not resumable forgets what was read") {
  http::EventLog log(0);
  log.begin_reading(0);
  log.append("a", false);
  log.append("b", true);
  CHECK(log.unread() == 2);
  CHECK(drain(log) == "ab");
  CHECK(log.bytes() == 0);
  CHECK(log.unread() == 0);
  log.append("c", false);
  CHECK(log.next()->number == 3);
}

TEST_CASE("what came after an event can be read again, from any event that is still there") {
  http::EventLog log(100);
  log.begin_reading(0);
  for (const char* text : {"a", "b", "c"}) log.append(text, false);
  CHECK(drain(log) == "abc");
  for (auto [after, rest] :
       {std::pair{0, "abc"}, std::pair{2, "c"}, std::pair{3, ""}, std::pair{99, ""}}) {
    CAPTURE(after);
    log.stop_reading();
    log.begin_reading(after);
    CHECK(drain(log) == rest);
  }
}

TEST_CASE("however much is said to nobody, a bounded part and the answer stay") {
  http::EventLog log(1000);
  for (int i = 0; i < 10'000; ++i) log.append(std::string(100, 'p'), false);
  CHECK(log.bytes() <= 1000);
  log.append(std::string(5000, 'A'), true);
  CHECK(log.bytes() <= 6000);
  log.begin_reading(3);
  CHECK(drain(log).ends_with('A'));
  CHECK(log.last() == 10'001);
}

TEST_CASE("an unread event never goes while somebody reads") {
  http::EventLog log(10);
  log.begin_reading(0);
  for (int i = 0; i < 100; ++i) log.append("0123456789", false);
  CHECK(log.unread() == 1000);
  CHECK(drain(log).size() == 1000);
  CHECK(log.bytes() <= 20);
}
