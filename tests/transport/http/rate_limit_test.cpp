#include "transport/http/rate_limit.hpp"

#include <doctest/doctest.h>

using namespace transport::http;
using std::chrono::seconds;

TEST_CASE("a bucket empties and fills again") {
  RateLimit limit(0.5, 2);
  RateLimit::Clock::time_point start{};
  struct Row {
    seconds at;
    int wait;  // -1: let in
  };
  for (const Row& row :
       {Row{seconds(0), -1}, Row{seconds(0), -1}, Row{seconds(0), 2}, Row{seconds(1), 1},
        Row{seconds(2), -1}, Row{seconds(2), 2}, Row{seconds(100), -1}, Row{seconds(100), -1},
        Row{seconds(100), 2}, Row{seconds(99), 2}}) {
    CAPTURE(row.at.count());
    auto wait = limit.take("alice", start + row.at);
    CHECK((wait ? wait->count() : -1) == row.wait);
  }
  CHECK(!limit.take("bob", start));
  CHECK(limit.refused() == 5);
}

TEST_CASE("a table that is full forgets whom it has not heard of for longest") {
  RateLimit limit(0.001, 1, 3);
  RateLimit::Clock::time_point now{};
  for (const char* key : {"a", "b", "c", "a", "d"}) (void)limit.take(key, now);
  CHECK(limit.size() == 3);
  CHECK(limit.take("a", now));   // remembered
  CHECK(!limit.take("b", now));  // forgotten
  for (int i = 0; i < 100'000; ++i) (void)limit.take(std::to_string(i), now);
  CHECK(limit.size() == 3);
}

TEST_CASE("one that is refused is told when to come back") {
  Response response = too_many_requests(seconds(7));
  CHECK(response.status == 429);
  bool told = false;
  for (const auto& [name, value] : response.headers) told |= name == "Retry-After" && value == "7";
  CHECK(told);
}

TEST_CASE("an IPv6 customer is one address, however many they have") {
  CHECK(address_key("2001:db8::1") == address_key("2001:db8::ffff:2"));
  CHECK(address_key("2001:db8::1") != address_key("2001:db8:0:1::1"));
  CHECK(address_key("192.0.2.1") != address_key("192.0.2.2"));
  CHECK(address_key("::ffff:192.0.2.1") == address_key("192.0.2.1"));
  CHECK(address_key("not an address") == "not an address");
}
