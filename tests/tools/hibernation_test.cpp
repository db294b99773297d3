// Kernels that are put on disk and come back, and checkpoints to go back to.

#include <doctest/doctest.h>

#include <fstream>

#include "tests/tools/fake_backend.hpp"

namespace fs = std::filesystem;
namespace json = boost::json;
using namespace std::chrono_literals;

namespace {

std::string text(fake::World& world, const std::string& code, const std::string& session = "") {
  json::object arguments;
  arguments["code"] = code;
  if (!session.empty()) arguments["session"] = session;
  return fake::text_of(world.call("run_python", arguments));
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The only session's handle, once it has run something.
std::string handle_of(fake::World& world) { return world.sessions.live("local").at(0)->handle(); }

std::vector<std::string> images(fake::World& world, const std::string& handle) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(world.directory / "sessions" / handle)) {
    std::string name = entry.path().filename();
    if (name.starts_with("image.")) names.push_back(name);
  }
  return names;
}

sandbox::SessionRecord stored(fake::World& world) { return world.store.list("local").at(0); }

tools::SessionPolicy no_checkpoints() {
  tools::SessionPolicy policy;
  policy.checkpoints.cells = 0;
  policy.checkpoints.work = 0s;
  return policy;
}

tools::SessionPolicy checkpoint_each(int cells) {
  tools::SessionPolicy policy;
  policy.checkpoints.cells = cells;
  return policy;
}

// What a process leaves that is killed: the directory as it is now, with nobody to hold it.
void take_over(fake::World& from, fake::World& to) {
  fs::copy(from.directory, to.directory, fs::copy_options::recursive);
}

}  // namespace

TEST_CASE("the client goes and comes back: the variables are there, by handle and by name") {
  tools::SessionPolicy policy;
  policy.default_name = "work";
  fake::World world(policy);
  world.backend.images = true;
  text(world, "set x 5");
  std::string handle = handle_of(world);
  world.wait(world.sessions.shutdown());
  CHECK(world.backend.sandboxes.empty());
  CHECK(stored(world).image->current);
  bool by_name = true;
  SUBCASE("by name") {}
  SUBCASE("by handle") { by_name = false; }
  std::string first = text(world, "get x", by_name ? "" : handle);
  CHECK(contains(first, "Session " + handle + " was taken over from disk, with its files."));
  CHECK(contains(first,
                 "The kernel was restored from disk as it was after execution 1: variables are "
                 "kept.]\n5"));
  CHECK(world.backend.starts == 1);
  CHECK(stored(world).generation == 1);  // nothing was lost
  CHECK(!stored(world).image->current);  // it has run on
}

TEST_CASE("an unnamed session is kept if it was used, and forgotten if it was not") {
  fake::World world;
  world.backend.images = true;
  text(world, "set x 5");
  std::string used = handle_of(world);
  world.call("create_session", {});
  world.wait(world.sessions.shutdown());
  CHECK(world.store.list("local").size() == 1);
  CHECK(contains(text(world, "get x", used), "variables are kept.]\n5"));
}

TEST_CASE("a kernel without use is put on disk, and wakes with the next execution") {
  auto policy = no_checkpoints();
  policy.idle_timeout = 1s;
  fake::World world(policy);
  world.backend.images = true;
  text(world, "set x 5");
  std::string handle = handle_of(world);
  world.give_up_after(4s, world.sessions.expire());
  CHECK(world.backend.sandboxes.empty());
  CHECK(world.sessions.live("local").at(0)->state() == tools::Session::State::hibernated);
  CHECK(contains(fake::text_of(world.call("list_sessions", {})), "on disk, variables kept"));
  CHECK(images(world, handle).size() == 1);
  std::string woken = text(world, "get x");
  CHECK(woken ==
        "[The kernel was restored from disk as it was after execution 1: variables are kept.]\n5");
  // Either on disk or live: the image went once the kernel had answered.
  CHECK(images(world, handle).empty());
  CHECK(!stored(world).image);
  CHECK(text(world, "get x") == "5");
}

TEST_CASE("a server that ends while a kernel is put on disk waits for that, and no longer") {
  auto policy = no_checkpoints();
  policy.idle_timeout = 1s;
  fake::World world(policy);
  world.backend.images = true;
  world.backend.freeze_takes = 300ms;
  world.backend.freezes_uncancelled = true;
  text(world, "set x 5");
  std::string handle = handle_of(world);
  world.give_up_after(1400ms, world.sessions.expire());  // returns: that is the point
  world.wait(world.sessions.shutdown());
  CHECK(contains(text(world, "get x", handle), "variables are kept.]\n5"));
}

TEST_CASE("what cannot be frozen goes on, until it is stopped or can go without") {
  auto policy = no_checkpoints();
  policy.idle_timeout = 1s;
  policy.session_ttl = 4s;
  fake::World world(policy);
  world.backend.images = true;
  world.backend.freeze_refusal = "it has a child process (sleep)";
  text(world, "set x 5");
  world.give_up_after(2200ms, world.sessions.expire());
  CHECK(world.backend.sandboxes.size() == 1);
  CHECK(world.backend.freezes == 1);  // not again and again
  CHECK(text(world, "get x") == "5");
  SUBCASE("it is said what an image does not carry") {
    world.backend.lost = {"fd 7: a TCP socket"};
    world.give_up_after(7s, world.sessions.expire());
    CHECK(world.backend.sandboxes.empty());
    CHECK(
        contains(text(world, "get x"),
                 "after execution 2: variables are kept. Not carried over: fd 7: a TCP socket.]"));
  }
  SUBCASE("and why a kernel was not kept") {
    world.backend.images = false;
    world.give_up_after(7s, world.sessions.expire());
    CHECK(contains(text(world, "get x"), "was stopped after 4 seconds without use"));
  }
}

TEST_CASE("a session that cannot be frozen at the end says why when it comes back") {
  fake::World world(no_checkpoints());
  world.backend.images = true;
  text(world, "set x 5");
  std::string handle = handle_of(world);
  world.backend.sandboxes.at(0)->refuses_to_freeze = "it has a child process";
  world.wait(world.sessions.shutdown());
  CHECK(contains(text(world, "get x", handle),
                 "A new kernel was started: the last one could not be put on disk when the server "
                 "ended (it has a child process). Variables from before are gone"));
}

TEST_CASE("an image that cannot be thawed is said to be so, and a fresh kernel starts") {
  fake::World world;
  world.backend.images = true;
  text(world, "set x 5");
  std::string handle = handle_of(world);
  world.wait(world.sessions.shutdown());
  auto image = world.directory / "sessions" / handle / images(world, handle).at(0);
  std::string reason;
  SUBCASE("damaged") {
    std::ofstream(image / "state") << "?";
    reason = "the image is damaged, or it is not the one of this session.";
  }
  SUBCASE("gone") {
    fs::remove_all(image);
    reason = "the image is not there any more.";
  }
  SUBCASE("another session's") {
    world.call("create_session", {});
    std::string other = handle_of(world);
    text(world, "set y 6", other);
    world.wait(world.sessions.shutdown());
    fs::remove_all(image);
    fs::copy(world.directory / "sessions" / other / images(world, other).at(0), image);
    reason = "the image is damaged, or it is not the one of this session.";
  }
  std::string first = text(world, "get x", handle);
  CHECK(contains(first, "the last one could not be restored, because " + reason));
  CHECK(contains(first, "Variables from before are gone; files in /workspace are kept."));
  CHECK(contains(first, "NameError"));
  CHECK(world.sessions.find("local", handle)->record().generation == 2);
}

TEST_CASE("when no kernel can be had, the image waits") {
  fake::World world(no_checkpoints());
  world.backend.images = true;
  text(world, "set x 5");
  std::string handle = handle_of(world);
  world.wait(world.sessions.shutdown());
  world.backend.refusal = "no isolation";
  CHECK(contains(text(world, "get x", handle), "not run: no isolation"));
  world.backend.refusal.clear();
  CHECK(contains(text(world, "get x", handle), "variables are kept.]\n5"));
}

TEST_CASE("a dead kernel goes back to the checkpoint, and the result says what is lost") {
  fake::World world(checkpoint_each(2));
  world.backend.images = true;
  text(world, "set x 1");
  text(world, "set x 2");  // the checkpoint comes after this one
  text(world, "set x 3");
  std::string died = text(world, "die");
  CHECK(
      contains(died,
               "the kernel died: SIGSEGV (segmentation fault). The next call goes on from the "
               "checkpoint after execution 2: executions 3 to 4 are lost, and files in /workspace "
               "are not rewound"));
  std::string next = text(world, "get x");
  CHECK(next ==
        "[The kernel was restored to its state after execution 2, since the last one died: SIGSEGV "
        "(segmentation fault): executions 3 to 4 are lost, and files in /workspace are not "
        "rewound.]\n2");
  CHECK(world.backend.starts == 1);
  CHECK(stored(world).generation == 2);
  CHECK(images(world, handle_of(world)).size() == 1);
}

TEST_CASE("without a checkpoint a dead kernel is replaced, as ever") {
  fake::World world(no_checkpoints());
  world.backend.images = true;
  text(world, "set x 1");
  CHECK(contains(text(world, "die"), "the next call starts a new kernel"));
  CHECK(contains(text(world, "get x"), "A new kernel was started: the last one died"));
  CHECK(world.backend.freezes == 0);
}

TEST_CASE("a kernel that cannot be frozen has no checkpoint, and its cells run on") {
  fake::World world(checkpoint_each(1));
  world.backend.images = true;
  world.backend.freeze_refusal = "it has a child process";
  CHECK(contains(text(world, "set x 1"), "(no output)"));
  CHECK(text(world, "get x") == "1");
  CHECK(images(world, handle_of(world)).empty());
}

TEST_CASE("a restart on request forgets the checkpoint") {
  fake::World world(checkpoint_each(1));
  world.backend.images = true;
  text(world, "set x 1");
  json::object restart;
  restart["restart"] = true;
  world.call("interrupt_execution", restart);
  CHECK(contains(text(world, "get x"), "was stopped on request. Variables from before are gone"));
  CHECK(world.backend.starts == 2);
}

TEST_CASE("after a crash of the server, a checkpoint is never taken for the last state") {
  fake::World world(checkpoint_each(2)), next(checkpoint_each(2));
  world.backend.images = next.backend.images = true;
  text(world, "set x 1");
  text(world, "set x 2");
  text(world, "set x 3");
  std::string handle = handle_of(world);
  std::string first;
  SUBCASE("crashed while the kernel was live") {
    take_over(world, next);
    first = text(next, "get x", handle);
    CHECK(contains(first,
                   "The kernel was restored to its state after execution 2, since the last one "
                   "ended with the server that ran it, or for lack of use: executions after 2 are "
                   "lost, and files in /workspace are not rewound."));
    CHECK(contains(first, "]\n2"));
  }
  SUBCASE("hibernated, woken, and crashed then") {
    world.wait(world.sessions.shutdown());
    text(world, "set x 4", handle);
    take_over(world, next);
    first = text(next, "get x", handle);
    CHECK(contains(first, "executions after 3 are lost"));
    CHECK(contains(first, "]\n3"));
  }
}

TEST_CASE("leftovers of a freeze that did not end are deleted by the next who opens it") {
  fake::World world;
  world.backend.images = true;
  text(world, "set x 5");
  std::string handle = handle_of(world);
  world.wait(world.sessions.shutdown());
  fs::create_directories(world.directory / "sessions" / handle / "image.99");
  fs::create_directories(world.directory / "sessions" / handle / "workspace.new" / "a");
  text(world, "get x", handle);
  CHECK(images(world, handle).size() == 1);
  CHECK(!fs::exists(world.directory / "sessions" / handle / "workspace.new"));
}

TEST_CASE("a conversation finds its session again after a restart of the server") {
  fake::World world(no_checkpoints());
  world.backend.images = true;
  mcp::Peer peer, other, eve;
  peer.principal = other.principal = "ada";
  eve.principal = "eve";
  peer.transport_session = eve.transport_session = "secret-of-the-transport";
  other.transport_session = "another";
  auto run = [&](const mcp::Peer& from, const char* code) {
    fake::Call call(from);
    json::object arguments;
    arguments["code"] = code;
    return fake::text_of(world.wait(world.call(call, "run_python", arguments)));
  };
  run(peer, "set x 5");
  world.wait(world.sessions.shutdown());
  CHECK(contains(run(other, "get x"), "New session "));
  CHECK(contains(run(eve, "get x"), "New session "));
  std::string again = run(peer, "get x");
  CHECK(contains(again, "was taken over from disk, with its files."));
  CHECK(contains(again, "variables are kept.]\n5"));
  // The key itself is nowhere on disk.
  for (const auto& record : world.store.list("ada"))
    CHECK(!contains(record.conversation.value_or(""), "secret"));
  // The default session of a process is its own.
  CHECK(contains(text(world, "get x"), "New session "));
}
