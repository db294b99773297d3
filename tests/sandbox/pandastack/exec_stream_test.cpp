#include "sandbox/pandastack/exec_stream.hpp"

#include <doctest/doctest.h>

#include "tests/sandbox/pandastack/scene.hpp"

namespace sandbox::pandastack {

TEST_CASE("a command with its output as it comes") {
  auto events = [](const std::string& text) {
    return reply(200, text, "cache-control: no-cache\r\n", "text/event-stream");
  };
  auto drain = [](ExecStream& stream, std::string& into) -> awaitable<void> {
    while (auto output = co_await stream.next())
      into += (output->is_stderr ? "2:" : "1:") + output->text;
  };
  struct Row {
    const char* name;
    std::string text;
    const char* output;
    int exit_code;
    std::optional<Failure> failure;
    Outcome outcome = Outcome::unknown;
  };
  const std::string a = "event: stdout\ndata: {\"chunk\":\"a\\n\"}\n\n";
  const std::string b = "event: stderr\ndata: {\"chunk\":\"b\\n\"}\n\n";
  const Row rows[] = {
      {"output and exit", a + b + "event: exit\ndata: {\"exit_code\":2}\n\n", "1:a\n2:b\n", 2, {}},
      {"what comes after is not read", "event: exit\ndata: {\"exit_code\":0}\n\n" + a, "", 0, {}},
      {"events of the future",
       a + "event: usage\ndata: {}\n\nevent: exit\ndata: {\"exit_code\":137}\n\n",
       "1:a\n",
       137,
       {}},
      {"it is cut", a + b, "1:a\n2:b\n", 0, Failure::cut},
      {"it is cut in an event", a + "event: exit\ndata: {\"exit_code\":0}\n", "1:a\n", 0,
       Failure::cut},
      {"an error", a + "event: error\ndata: {\"error\":\"EOF\"}\n\n", "1:a\n", 0,
       Failure::answered},
      {"a guest that is not up",
       "event: error\ndata: {\"error\":\"dial tcp 1.2.3.4:22: connect: connection refused\"}\n\n",
       "", 0, Failure::answered, Outcome::refused},
      {"an exit without a code", "event: exit\ndata: {}\n\n", "", 0, Failure::malformed},
      {"output that is not JSON", "event: stdout\ndata: a\n\n", "", 0, Failure::malformed},
      {"output that is no text", "event: stdout\ndata: {\"chunk\":7}\n\n", "", 0,
       Failure::malformed},
      {"an event without end", "data: " + std::string(1 << 20, 'x'), "", 0, Failure::malformed},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    Scene scene({events(row.text)});
    auto stream = scene.run(scene.client->exec_stream("s1", "true", 5s));
    std::string output;
    auto error = scene.failure_of(drain(*stream, output));
    CHECK(output == row.output);
    REQUIRE(error.has_value() == row.failure.has_value());
    if (error) {
      CHECK(error->failure == *row.failure);
      CHECK(error->outcome == row.outcome);
      CHECK(std::string(error->what()).starts_with("PandaStack could not run a command"));
    } else {
      CHECK(stream->exit_code() == row.exit_code);
    }
  }
}

}  // namespace sandbox::pandastack
