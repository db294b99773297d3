// Which resources a subscriber is told of when something happens in a session.

#include "tools/resource_changes.hpp"

#include <doctest/doctest.h>

#include <boost/asio/io_context.hpp>

namespace {

// The URIs that `ada`, who subscribed to all of these, is told of.
std::vector<std::string> told(std::function<void(tools::ResourceChanges&)> happens) {
  boost::asio::io_context io;
  mcp::Hub hub;
  mcp::Subscription ada(io.get_executor(), hub, "ada");
  for (const char* uri :
       {"pykeep://sessions/s1/executions/1", "pykeep://sessions/s1/executions/2",
        "pykeep://sessions/s1/files/a.csv", "pykeep://sessions/s1/files/b/c%20d.csv",
        "pykeep://sessions/s2/files/a.csv"})
    ada.want(std::string(uri));
  tools::ResourceChanges changes(hub);
  happens(changes);
  std::vector<std::string> uris;
  for (const auto& message : ada.take())
    uris.emplace_back(message.at("params").at("uri").as_string());
  return uris;
}

tools::ExecutionReport execution(int number, std::string principal) {
  tools::ExecutionReport report;
  report.principal = std::move(principal);
  report.session = "s1";
  report.number = number;
  return report;
}

}  // namespace

TEST_CASE("an execution that ended may have changed itself and its session's files") {
  using Uris = std::vector<std::string>;
  CHECK(told([](auto& changes) { changes.execution_ended(execution(1, "ada")); }) ==
        Uris{"pykeep://sessions/s1/executions/1", "pykeep://sessions/s1/files/a.csv",
             "pykeep://sessions/s1/files/b/c%20d.csv"});
  CHECK(told([](auto& changes) { changes.execution_ended(execution(0, "ada")); }).empty());
  CHECK(told([](auto& changes) { changes.execution_ended(execution(1, "bob")); }).empty());
}

TEST_CASE("an upload has changed its own file") {
  using Uris = std::vector<std::string>;
  CHECK(told([](auto& changes) { changes.file_written("ada", "s1", "b/c d.csv"); }) ==
        Uris{"pykeep://sessions/s1/files/b/c%20d.csv"});
  CHECK(told([](auto& changes) { changes.file_written("bob", "s1", "a.csv"); }).empty());
}
