#include <spdlog/spdlog.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>

#include "app/commands.hpp"
#include "transport/log_sink.hpp"

namespace {

void log_to_stderr(const std::string& level) {
  auto sink = std::make_shared<transport::LogSink>(STDERR_FILENO);
  auto logger = std::make_shared<spdlog::logger>("pykeep", std::move(sink));
  logger->set_level(spdlog::level::from_str(level));
  spdlog::set_default_logger(std::move(logger));
}

int dispatch(const app::Invocation& invocation) {
  switch (invocation.command) {
    case app::Command::stdio:
      return app::stdio(invocation.options);
    case app::Command::run:
      return app::run(invocation.options);
    case app::Command::doctor:
      return app::doctor(invocation.options);
    case app::Command::template_build:
      return app::template_build(invocation.options);
    case app::Command::template_list:
      return app::template_list(invocation.options);
  }
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // a client or a kernel that went away is an error of one write
  try {
    app::Invocation invocation = app::parse(argc, argv);
    log_to_stderr(invocation.options.log_level);
    return dispatch(invocation);
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "pykeep: %s\n", failure.what());
    return 1;
  }
}
