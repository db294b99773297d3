#include "sandbox/local/probe.hpp"

#include <doctest/doctest.h>

#include "sandbox/local/bubblewrap.hpp"
#include "tests/sandbox/local/sandboxes.hpp"

using namespace sandbox;
using namespace sandbox::local;
using namespace sandbox::local::testing;

TEST_CASE("every layer that a sandbox needs is achieved here, or says how to get it") {
  Scratch scratch;
  auto layers = probe_layers(scratch.path);
  CHECK(layers.size() >= 15);
  for (const Layer& layer : layers) {
    CAPTURE(layer.name);
    CAPTURE(layer.detail);
    CHECK(layer.state != Layer::State::absent);
    CHECK((layer.state == Layer::State::achieved) == layer.remedy.empty());
  }
}

TEST_CASE("the remedy fits the switch that is in the way") {
  struct Row {
    const char* file;
    const char* value;
    const char* remedy;
  };
  for (const Row& row :
       {Row{"user/max_user_namespaces", "0\n", "sysctl -w user.max_user_namespaces=15000"},
        Row{"kernel/unprivileged_userns_clone", "0\n", "kernel.unprivileged_userns_clone=1"},
        Row{"kernel/apparmor_restrict_unprivileged_userns", "1\n",
            "profile bwrap /usr/bin/bwrap flags=(unconfined) {\n    userns,"},
        Row{"user/max_user_namespaces", "96365\n", "In a container"}}) {
    CAPTURE(row.file);
    Scratch proc_sys;
    auto file = proc_sys.path / row.file;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << row.value;
    CHECK(namespace_remedy(proc_sys.path).find(row.remedy) != std::string::npos);
  }
}

TEST_CASE("bwrap's refusals are explained") {
  struct Row {
    const char* words;
    const char* remedy;
  };
  for (const Row& row :
       {Row{"bwrap: No permissions to creating new namespace, likely because ...", "doctor"},
        Row{"bwrap: setting up uid map: Permission denied\n", "AppArmor"},
        Row{"bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted\n", "AppArmor"},
        Row{"bwrap: Can't mount proc on /newroot/proc: Operation not permitted", "systempaths"},
        Row{"bwrap: Unknown option --size", "0.7"}, Row{"", "without a word"}}) {
    CAPTURE(row.words);
    CHECK(explain_bwrap(row.words).find(row.remedy) != std::string::npos);
  }
}
