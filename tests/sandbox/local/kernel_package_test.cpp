#include "sandbox/local/kernel_package.hpp"

#include <doctest/doctest.h>

#include <thread>

#include "tests/sandbox/local/sandboxes.hpp"

using sandbox::local::install_kernel_package;
using namespace sandbox::local::testing;

namespace fs = std::filesystem;

TEST_CASE("several first starts at once install the kernel's files, whole and nothing else") {
  for (int round = 0; round < 20; ++round) {
    Scratch root;
    fs::path wanted = root.path / "one";
    fs::path reference = install_kernel_package(root.path / "reference");
    std::string failure;
    auto install = [&] {
      try {
        install_kernel_package(wanted);
      } catch (const std::exception& error) {
        failure = error.what();
      }
    };
    std::thread first(install), second(install);
    first.join();
    second.join();
    CHECK(failure == "");
    fs::path package = wanted / reference.filename() / "pykeep_kernel";
    int files = 0;
    for (const auto& entry : fs::directory_iterator(package)) {
      auto same = reference / "pykeep_kernel" / entry.path().filename();
      REQUIRE(fs::exists(same));
      CHECK(contents_of(entry.path()) == contents_of(same));
      ++files;
    }
    CHECK(files > 10);
  }
}
