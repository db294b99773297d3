#include "sandbox/pandastack/errors.hpp"

#include <doctest/doctest.h>

namespace sandbox::pandastack {

TEST_CASE("what the body of an error says") {
  struct Row {
    const char* body;
    const char* message;
  };
  const Row rows[] = {
      {R"({"error":"not found"})", "not found"},
      {R"({"detail":"missing bearer token","error":"unauthorized"})",
       "unauthorized: missing bearer token"},
      {R"({"error":"rate limit: 50 req/burst","workspace":"ws_demo"})", "rate limit: 50 req/burst"},
      // The documented envelope, which no server sends.
      {R"({"error":{"code":"sandbox.not_found","message":"Sandbox sb_abc123 does not exist",)"
       R"("request_id":"req_xyz","details":{}}})",
       "Sandbox sb_abc123 does not exist"},
      {R"({"message":"Forbidden"})", "Forbidden"},
      {R"({"error":"a","message":"a","detail":"a"})", "a"},
      // A recovered panic, as text/plain.
      {"{\"error\":\"internal server error\"}\n", "internal server error"},
      {"404 page not found\n", "404 page not found"},
      {"<html>\r\n<h1>502 Bad Gateway</h1>\n</html>", "<html> <h1>502 Bad Gateway</h1> </html>"},
      {"", ""},
      {"  \n\t ", ""},
      {"null", "null"},
      {R"({"error":7})", R"({"error":7})"},
      {R"({"error":null})", R"({"error":null})"},
      {R"({"error":{"error":{"message":"too deep"}}})",
       R"({"error":{"error":{"message":"too deep"}}})"},
      {"\x1b[31mred\x7f\xff\xc3", "[31mred ??"},
      {R"({"error":"sandbox not running (paused or hibernated) — resume/wake it first"})",
       "sandbox not running (paused or hibernated) — resume/wake it first"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.body);
    CHECK(message_of(row.body) == row.message);
  }
  std::string endless = message_of(std::string(100'000, 'x'));
  CHECK(endless.size() <= 500);
  CHECK(endless.ends_with("…"));
  std::string nested(100'000, '[');
  CHECK(message_of(nested).size() <= 500);
}

TEST_CASE("what a status and its message mean") {
  struct Row {
    int status;
    const char* message;
    bool retry_after;
    Outcome outcome;
    bool warm_up;
  };
  constexpr Outcome refused = Outcome::refused, unknown = Outcome::unknown;
  const Row rows[] = {
      {400, "cmd required", false, refused, false},
      {401, "unauthorized", false, refused, false},
      {402, "upgrade", false, refused, false},
      {404, "not found", false, refused, false},
      {409, "sandbox not running", false, refused, false},
      {411, "", false, refused, false},
      {429, "rate limit", true, refused, false},
      {500, "cell timeout after 30s", false, unknown, false},
      {500, "EOF", false, unknown, false},
      {500, "ssh: dial tcp 10.200.0.6:22: connect: connection refused", false, refused, true},
      {500, "dial tcp 10.200.0.6:22: connect: no route to host", false, refused, true},
      {500, "dial tcp 10.200.0.6:22: i/o timeout", false, refused, true},
      {502, "upstream: dial tcp 10.200.0.6:9999: connect: connection refused", false, refused,
       true},
      // The command may run.
      {500, "read tcp 10.0.0.1:4->10.200.0.6:22: i/o timeout", false, unknown, false},
      {500, "write: no route to host", false, unknown, false},
      {501, "not available in this build", false, refused, false},
      {502, "agent unreachable", false, unknown, false},
      {502, "no available compute node", false, refused, false},
      {502, "", false, unknown, false},
      {503, "no compute capacity available", true, refused, false},
      {503, "auto-wake: wake resume: ...", false, unknown, false},
      {504, "", false, unknown, false},
      {507, "insufficient host memory", false, refused, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.status);
    CAPTURE(row.message);
    CHECK(outcome_of(row.status, row.message, row.retry_after) == row.outcome);
    CHECK(is_warm_up(row.message) == row.warm_up);
  }
}

}  // namespace sandbox::pandastack
