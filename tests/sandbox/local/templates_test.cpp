#include "sandbox/local/templates.hpp"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/support/scratch.hpp"

namespace fs = std::filesystem;
using sandbox::local::Templates;

namespace {

// An environment as `python -m venv` makes it, of the system's Python.
struct Environment {
  Environment() {
    fs::create_directories(root / "real" / "bin");
    fs::create_symlink("/usr/bin/python3", root / "real" / "bin" / "python3");
    std::ofstream(root / "real" / "pyvenv.cfg") << "home = /usr/bin\n";
    fs::create_symlink("real", root / "default");
  }
  testing::Scratch scratch;
  fs::path root = scratch.path;
};

}  // namespace

TEST_CASE("an environment is found by name, by path and by its interpreter, also through links") {
  Environment environment;
  Templates templates(environment.root);
  fs::path real = environment.root / "real";
  for (const std::string& name :
       {std::string("default"), std::string(), real.string(),
        (environment.root / "default").string(), (real / "bin" / "python3").string(),
        (environment.root / "default" / "bin" / "python3").string()}) {
    CAPTURE(name);
    sandbox::Template python = templates.find(name);
    CHECK(python.python == fs::canonical(real) / "bin" / "python3");
    REQUIRE(!python.visible.empty());
    CHECK(python.visible.front() == fs::canonical(real));  // or nothing would find it inside
  }
}

TEST_CASE("without an environment the system's interpreter is taken, where it really is") {
  Templates templates("/nonexistent");
  CHECK(templates.find("").python == fs::canonical("/usr/bin/python3"));
  CHECK(templates.find("/usr/bin/python3").python == fs::canonical("/usr/bin/python3"));
}

TEST_CASE("what is not there is said with the remedy") {
  Templates templates("/nonexistent");
  for (const char* name : {"mine", "../x", "/no/such/place"}) {
    CAPTURE(name);
    try {
      templates.find(name);
      FAIL("found");
    } catch (const sandbox::StartError& refused) {
      CHECK(std::string(refused.what()).find("pykeep template build") != std::string::npos);
    }
  }
}
