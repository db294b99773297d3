#include "sandbox/pandastack/server_events.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace sandbox::pandastack {
namespace {

std::string read_all(const std::vector<std::string>& pieces) {
  ServerEvents events;
  std::string out;
  for (const std::string& piece : pieces) {
    events.feed(piece);
    while (auto event = events.next()) out += event->name + "=" + event->data + ";";
    if (events.is_too_long()) return out + "(too long)";
  }
  return out;
}

}  // namespace

TEST_CASE("a stream of events, in whatever pieces it comes") {
  struct Row {
    const char* text;
    const char* events;
  };
  const Row rows[] = {
      {"event: stdout\ndata: {\"chunk\":\"a\\n\"}\n\nevent: exit\ndata: {\"exit_code\":2}\n\n",
       "stdout={\"chunk\":\"a\\n\"};exit={\"exit_code\":2};"},
      {"data: a\r\n\r\ndata:b\r\n\r\n", "message=a;message=b;"},
      {"data: a\ndata:  b\ndata\n\n", "message=a\n b\n;"},
      {": a comment\n\nevent: lost\n\ndata: x\n\n", "message=x;"},
      {"id: 7\nretry: 1\nevents: no\ndatum: no\ndata: x\n\n", "message=x;"},
      {"data: unfinished\n", ""},
      {"\n\n\n", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(read_all({row.text}) == row.events);
    std::vector<std::string> bytes;
    for (char c : std::string(row.text)) bytes.emplace_back(1, c);
    CHECK(read_all(bytes) == row.events);
  }
}

TEST_CASE("an event without end is not kept") {
  std::vector<std::string> lines(5000, "data: " + std::string(100, 'x') + "\n");
  CHECK(read_all(lines) == "(too long)");
  std::vector<std::string> one_line(50, std::string(10'000, 'x'));
  CHECK(read_all(one_line) == "(too long)");
  CHECK(read_all({std::string(1 << 20, 'x')}) == "(too long)");
  std::vector<std::string> comments(5000, ": " + std::string(100, 'x') + "\n\n");
  comments.push_back("data: y\n\n");
  CHECK(read_all(comments) == "message=y;");
}

}  // namespace sandbox::pandastack
