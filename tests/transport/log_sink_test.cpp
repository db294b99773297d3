#include "transport/log_sink.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <spdlog/logger.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

namespace {

std::string drain(int fd) {
  std::string all(1 << 20, '\0');
  std::size_t size = 0;
  for (ssize_t got; (got = read(fd, all.data() + size, all.size() - size)) > 0;) size += got;
  all.resize(size);
  return all;
}

}  // namespace

TEST_CASE("a stderr that nobody reads never stops the server, and the loss is told") {
  int ends[2];
  REQUIRE(pipe2(ends, O_CLOEXEC) == 0);
  fcntl(ends[0], F_SETFL, O_NONBLOCK);  // the reading end alone
  spdlog::logger log("test", std::make_shared<transport::LogSink>(ends[1]));
  log.set_pattern("%v");

  auto started = std::chrono::steady_clock::now();
  for (int i = 0; i < 5000; ++i) log.info("line {} {}", i, std::string(90, '.'));
  CHECK(std::chrono::steady_clock::now() - started < std::chrono::seconds(20));
  std::string kept = drain(ends[0]);
  CHECK(kept.starts_with("line 0 "));
  CHECK(kept.size() <= 65536);

  log.info("heard again");
  std::string after = drain(ends[0]);
  CHECK(after.ends_with("log lines dropped: nobody read them)\nheard again\n"));

  log.info("{}", std::string(100000, 'y'));
  std::string cut = drain(ends[0]);
  CHECK(cut.size() == 4096);
  CHECK(cut.ends_with(" ...\n"));
  close(ends[0]);
  log.info("nobody there");  // EPIPE is no end either
  close(ends[1]);
}
