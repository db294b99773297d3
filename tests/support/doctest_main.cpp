#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <csignal>

int main(int argc, char** argv) {
  std::signal(SIGPIPE,
              SIG_IGN);  // as the program itself: a closed pipe is an error code, not an end
  return doctest::Context(argc, argv).run();
}
