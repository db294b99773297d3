#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "tests/sandbox/place.hpp"

// Kernels that are frozen, thawed, and brought up ahead of time.

namespace sandbox {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using Status = Execution::Status;

awaitable<void> freeze(Sandbox& sandbox, fs::path image, FreezeOptions options,
                       FreezeReport& report) {
  report = co_await sandbox.freeze(std::move(image), options);
}

awaitable<void> thaw(Backend& backend, fs::path image, SandboxSpec spec, Thaw reason,
                     std::unique_ptr<Sandbox>& sandbox) {
  sandbox = co_await backend.thaw(std::move(image), std::move(spec), reason);
}

awaitable<void> expect_refusal(Sandbox& sandbox, fs::path image, std::string& why) {
  try {
    co_await sandbox.freeze(std::move(image), FreezeOptions());
  } catch (const FreezeError& refused) {
    why = refused.what();
  }
}

awaitable<void> expect_refusal(Backend& backend, fs::path image, SandboxSpec spec,
                               std::string& why) {
  try {
    auto sandbox = co_await backend.thaw(std::move(image), std::move(spec), Thaw::wake);
    co_await sandbox->close();
  } catch (const ThawError& refused) {
    why = refused.what();
  }
}

awaitable<void> bake(boost::asio::io_context& io, boost::asio::thread_pool& pool,
                     local::BackendOptions options, Template python) {
  co_await local::bake(io.get_executor(), pool, std::move(options), std::move(python));
}

struct ImagePlace : Place {
  FreezeReport freeze(Sandbox& one, const std::string& name, FreezeOptions options = {}) {
    FreezeReport report;
    run_to_end(io, sandbox::freeze(one, scratch.path / name, options, report), 60s);
    return report;
  }
  std::unique_ptr<Sandbox> thaw(const std::string& name, Thaw reason) {
    SandboxSpec twin = spec;
    twin.workspace = new_workspace("workspace-" + std::to_string(++twins));
    std::unique_ptr<Sandbox> thawed;
    run_to_end(io, sandbox::thaw(*backend, scratch.path / name, twin, reason, thawed), 60s);
    return thawed;
  }
  int twins = 0;
};

TEST_CASE("a frozen kernel goes on where it was, any number of times") {
  ImagePlace place;
  place.run("import random, threading, time\nx = 40\ng = iter(range(5)); next(g)\nrandom.seed(1)");
  place.run(
      "thread = threading.Thread(target=time.sleep, args=(3600,), daemon=True); thread.start()");
  FreezeReport report = place.freeze(*place.sandbox, "image");
  CHECK(report.lost.empty());
  CHECK(report.bytes > 0);
  CHECK(fs::exists(place.scratch.path / "image"));
  CHECK(place.story(place.run("x += 1\nx, next(g)")) == "[(41, 1)]");

  SUBCASE("its session goes back to it, with the same random numbers") {
    auto one = place.thaw("image", Thaw::snapshot);
    CHECK(one->how_started() == Start::image);
    CHECK(place.story(place.run_in(*one, "x += 2\nx, next(g), thread.is_alive()")) ==
          "[(42, 1, True)]");
    Execution& drawn = place.run_in(*one, "print(random.random())");
    CHECK(place.story(drawn) == "0.13436424411240122\n");
    CHECK(drawn.number == 4);
    run_to_end(place.io, one->close());
  }
  SUBCASE("twins share nothing") {
    auto one = place.thaw("image", Thaw::fork), other = place.thaw("image", Thaw::fork);
    const char* code = "import uuid, secrets\n(random.random(), uuid.uuid4(), secrets.token_hex())";
    std::string first = place.story(place.run_in(*one, code));
    CHECK(first.starts_with("[(0."));
    CHECK(first != place.story(place.run_in(*other, code)));
    place.run_in(*one, "open('mine', 'w').write('1')\nx = 1");
    CHECK(place.story(place.run_in(*other, "import os\nx, os.path.exists('mine')")) ==
          "[(40, False)]");
    run_to_end(place.io, one->close());
    run_to_end(place.io, other->close());
  }
  SUBCASE("an image of an image") {
    auto one = place.thaw("image", Thaw::wake);
    place.run_in(*one, "y = x + 2");
    place.freeze(*one, "second", {.keep_running = false});
    run_to_end(place.io, one->close());
    fs::remove_all(place.scratch.path / "image");
    auto other = place.thaw("second", Thaw::wake);
    CHECK(place.story(place.run_in(*other, "y, next(g)")) == "[(42, 1)]");
    run_to_end(place.io, other->close());
  }
}

TEST_CASE("what cannot be frozen is refused by name, and goes on") {
  struct Row {
    const char* before;
    const char* why;
    const char* after;
  };
  ImagePlace place;
  for (const Row& row : {
           Row{"import socket\ns = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen()", "socket",
               "s.close()"},
           Row{"import subprocess\np = subprocess.Popen(['sleep', '60'])", "process",
               "p.kill(); p.wait()"},
       }) {
    CAPTURE(row.before);
    place.run(row.before);
    std::string why;
    run_to_end(place.io, expect_refusal(*place.sandbox, place.scratch.path / "image", why), 30s);
    CAPTURE(why);
    CHECK(why.find(row.why) != std::string::npos);
    CHECK_FALSE(fs::exists(place.scratch.path / "image"));
    CHECK(place.run(row.after).status == Status::ok);
  }
  run_to_end(place.io, place.sandbox->close());
  std::string why;
  run_to_end(place.io, expect_refusal(*place.sandbox, place.scratch.path / "image", why));
  CHECK(why.find("the kernel has ended") != std::string::npos);
}

TEST_CASE("an image that does not fit is refused with the reason") {
  ImagePlace place;
  place.freeze(*place.sandbox, "image");
  fs::path image = place.scratch.path / "image", damaged = place.scratch.path / "damaged";
  SandboxSpec spec = place.spec;
  spec.workspace = place.new_workspace("other");
  auto refusal = [&](const fs::path& path, const SandboxSpec& wanted) {
    std::string why;
    run_to_end(place.io, expect_refusal(*place.backend, path, wanted, why), 30s);
    return why;
  };
  CHECK(refusal(place.scratch.path / "none", spec).find("no image") != std::string::npos);

  SandboxSpec other = spec;
  other.python.python = "/usr/bin/python3-other";
  CHECK(refusal(image, other).find("another Python") != std::string::npos);

  fs::copy(image, damaged, fs::copy_options::recursive);
  fs::resize_file(damaged / "memory", fs::file_size(damaged / "memory") / 2);
  CHECK(refusal(damaged, spec) != "");

  std::ofstream(damaged / "kernel.json") << "{";
  CHECK(refusal(damaged, spec).find("damaged") != std::string::npos);

  fs::permissions(image / "memory", fs::perms::others_write, fs::perm_options::add);
  CHECK(refusal(image, spec).find("others can write") != std::string::npos);
}

TEST_CASE("a session starts from the template's image, or says why not") {
  ImagePlace place;
  run_to_end(place.io, bake(place.io, place.pool, place.options, place.spec.python), 120s);
  SandboxSpec spec = place.spec;
  spec.workspace = place.new_workspace("from image");
  std::unique_ptr<Sandbox> warm;

  SUBCASE("warm, as if nothing had run in it") {
    run_to_end(place.io, start(*place.backend, spec, warm), 60s);
    CHECK(warm->how_started() == Start::template_image);
    CHECK(warm->cold_because() == "");
    Execution& first = place.run_in(*warm, "import sys, os\n'IPython' in sys.modules, os.getcwd()");
    CHECK(first.number == 1);
    CHECK(place.story(first) == "[(True, '/workspace')]");
    CHECK(place.story(place.run_in(*warm, "%%bash\necho $GIVEN; echo hello >file")) == "\n");
    CHECK(fs::exists(spec.workspace / "file"));
  }
  SUBCASE("with variables of its own") {
    spec.environment = {{"GIVEN", "value"}};
    run_to_end(place.io, start(*place.backend, spec, warm), 60s);
    CHECK(warm->how_started() == Start::template_image);
    CHECK(place.story(place.run_in(*warm, "import os\nos.environ['GIVEN']")) == "['value']");
  }
  SUBCASE("not with variables that are read early") {
    spec.environment = {{"PYTHONHASHSEED", "1"}};
    run_to_end(place.io, start(*place.backend, spec, warm), 60s);
    CHECK(warm->how_started() == Start::cold);
    CHECK(warm->cold_because().find("PYTHONHASHSEED") != std::string::npos);
    FreezeReport report = place.freeze(*warm, "cold");
    CHECK(report.bytes > 0);
  }
  run_to_end(place.io, warm->close());
}

TEST_CASE("a sandbox that was brought up ahead of time is the next session's") {
  ImagePlace place;
  run_to_end(place.io, bake(place.io, place.pool, place.options, place.spec.python), 120s);
  local::BackendOptions options = place.options;
  auto backend = local::make_backend(place.io.get_executor(), place.pool, options);
  fs::path spares = options.kernel_root / "spares";
  auto waiting = [&] {
    std::error_code none_yet;
    return std::distance(fs::directory_iterator(spares, none_yet), {});
  };
  SandboxSpec spec = place.spec;
  spec.workspace = place.new_workspace("spare's");
  std::unique_ptr<Sandbox> sandbox;
  backend->prepare(spec);
  for (int i = 0; i < 600 && waiting() == 0; ++i) let_run(place.io, 100ms);
  REQUIRE(waiting() == 1);
  let_run(place.io, 2s);  // its directory is there first; start() would wait for the rest

  SUBCASE("at once, in the workspace that was asked for") {
    auto began = std::chrono::steady_clock::now();
    run_to_end(place.io, start(*backend, spec, sandbox), 60s);
    CHECK(std::chrono::steady_clock::now() - began < 5s);
    CHECK(waiting() == 0);
    place.run_in(*sandbox, "open('file', 'w').write('x')");
    CHECK(fs::exists(spec.workspace / "file"));
    CHECK(sandbox->files().host_path("file") == (spec.workspace / "file").string());
  }
  SUBCASE("not where there are files already") {
    std::ofstream(spec.workspace / "mine") << "x";
    run_to_end(place.io, start(*backend, spec, sandbox), 60s);
    CHECK(waiting() == 1);
    CHECK(place.story(place.run_in(*sandbox, "import os\nos.listdir()")) == "[['mine']]");
  }
  SUBCASE("not for one that wants something else") {
    spec.limits.memory = 1 << 30;
    run_to_end(place.io, start(*backend, spec, sandbox), 60s);
    CHECK(waiting() == 1);
  }
  run_to_end(place.io, sandbox->close());
  run_to_end(place.io, backend->stop());
  CHECK(waiting() == 0);
}

}  // namespace
}  // namespace sandbox
