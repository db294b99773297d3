#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>

#include "app/commands.hpp"
#include "transport/log.hpp"

namespace {

void log_to_stderr(const app::Options& options) {
  auto format =
      options.log_format == "json" ? transport::LogFormat::json : transport::LogFormat::text;
  transport::start_log(STDERR_FILENO, options.log_level, format);
}

// Else the first file or socket of ours would be taken for the stream that the caller left closed.
void open_standard_streams() {
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(fd, F_GETFD) == -1) (void)!open("/dev/null", O_RDWR);
}

// What print functions of a command wrote may still be on its way, to a full disk say.
bool wrote_all() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

int dispatch(const app::Invocation& invocation) {
  switch (invocation.command) {
    case app::Command::stdio:
      return app::stdio(invocation.options);
    case app::Command::http:
      return app::http(invocation.options);
    case app::Command::run:
      return app::run(invocation.options);
    case app::Command::doctor:
      return app::doctor(invocation.options);
    case app::Command::template_build:
      return app::template_build(invocation.options);
    case app::Command::template_list:
      return app::template_list(invocation.options);
    case app::Command::snapshots_list:
      return app::snapshots_list(invocation.options);
    case app::Command::snapshots_show:
      return app::snapshots_show(invocation.options);
    case app::Command::snapshots_delete:
      return app::snapshots_delete(invocation.options);
    case app::Command::sessions_list:
      return app::sessions_list(invocation.options);
    case app::Command::sessions_close:
      return app::sessions_close(invocation.options);
    case app::Command::sessions_export:
      return app::sessions_export(invocation.options);
    case app::Command::client_config:
      return app::client_config(invocation.options);
  }
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  std::signal(SIGPIPE, SIG_IGN);  // a client or a kernel that went away is an error of one write
  std::signal(SIGXFSZ, SIG_IGN);  // and so is a file beyond the caller's limit
  try {
    app::Invocation invocation = app::parse(argc, argv);
    log_to_stderr(invocation.options);
    int code = dispatch(invocation);
    if (wrote_all()) return code;
    std::fputs("pykeep: the output could not be written completely\n", stderr);
    return code ? code : 1;
  } catch (const std::exception& failure) {
    std::fprintf(stderr, "pykeep: %s\n", failure.what());
    return 1;
  }
}
