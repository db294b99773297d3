#include "sandbox/pandastack/relay.hpp"

#include <doctest/doctest.h>

#include "tests/sandbox/fake_kernel.hpp"

namespace sandbox::pandastack {
namespace {

TEST_CASE("a state is read, and nothing that is none") {
  auto state = read_state(object(
      R"({"epoch":"9f31-07aa","port":40117,"kernel":{"pid":812,"alive":true,"connected":true,"exit":null},
          "sent":3,"busy":false,"last":41})"));
  REQUIRE(state);
  CHECK(state->epoch == "9f31-07aa");
  CHECK(state->sent == 3);
  CHECK(state->last == 41);
  CHECK(state->connected);
  CHECK_FALSE(state->ended);
  auto taken_over = read_state(object(
      R"({"epoch":"9f","port":1,"kernel":{"pid":null,"alive":false,"exit":null},"sent":null,"busy":true})"));
  REQUIRE(taken_over);
  CHECK_FALSE(taken_over->sent);
  CHECK_FALSE(taken_over->ended);
  for (const char* bad : {R"({})", R"({"epoch":"a b","port":1})", R"({"epoch":"a","port":0})",
                          R"({"epoch":"a&x=1","port":1})", R"({"epoch":"a","port":1,"sent":-1})",
                          R"({"epoch":"a","port":1,"last":-5})", R"({"epoch":7,"port":1})"}) {
    CAPTURE(bad);
    CHECK_FALSE(read_state(object(bad)));
  }
}

TEST_CASE("what start printed is found among what a login shell says") {
  Started good = read_started("Welcome!\n{\"ok\":true,\"epoch\":\"a\",\"port\":7,\"sent\":0}\n");
  REQUIRE(good.state);
  CHECK(good.state->port == 7);
  Started lacks = read_started(
      R"({"ok":false,"problem":"no_ipython","message":"m","remedy":"python3 -m pip install ipython"})");
  CHECK_FALSE(lacks.state);
  CHECK(lacks.problem == "no_ipython");
  CHECK(lacks.remedy == "python3 -m pip install ipython");
  CHECK(read_started("bash: python3: command not found").problem == "failed");
  CHECK(read_started("").problem == "failed");
}

TEST_CASE("a refusal is the relay's only with a reason") {
  auto refusal = read_refusal(
      409,
      R"({"error":"this is another epoch","reason":"epoch","state":{"epoch":"b","port":1,"sent":4}})");
  REQUIRE(refusal);
  CHECK(refusal->reason == "epoch");
  REQUIRE(refusal->state);
  CHECK(refusal->state->sent == 4);
  const char* of_the_api = "{\"error\":\"sandbox not running (paused or hibernated)\"}";
  CHECK_FALSE(read_refusal(409, of_the_api));
  CHECK_FALSE(read_refusal(404, "404 page not found"));
}

}  // namespace
}  // namespace sandbox::pandastack
