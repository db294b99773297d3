// Which session a call means, and what becomes of sessions.

#include "tools/sessions.hpp"

#include <doctest/doctest.h>

#include <fstream>
#include <set>

#include "tests/tools/call_words.hpp"
#include "tests/tools/fake_backend.hpp"

namespace json = boost::json;
using namespace std::chrono_literals;
using fake::code, fake::contains, fake::session_of, fake::with_session;

namespace {

mcp::CallToolResult run(fake::World& world, const mcp::Peer& peer, json::object meta = {}) {
  fake::Call call(peer);
  call.meta_value = std::move(meta);
  return world.wait(world.call(call, "run_python", code("ok")));
}

json::object conversation(const char* key, const char* id) {
  json::object meta;
  meta[key] = id;
  return meta;
}

mcp::Peer peer(const char* principal, const char* transport_session, bool has_default) {
  mcp::Peer peer;
  peer.principal = principal;
  peer.transport_session = transport_session;
  peer.has_default_session = has_default;
  return peer;
}

}  // namespace

TEST_CASE("without a handle, the caller's own default session is meant") {
  fake::World world;
  mcp::Peer stdio = peer("ada", "", true);
  mcp::Peer legacy_http = peer("ada", "s1", false), other_http = peer("ada", "s2", false);
  mcp::Peer modern_http = peer("ada", "", false), eve = peer("eve", "", false);
  json::object chat = conversation("vscode.conversationId", "c1");
  json::object other_chat = conversation("vscode.conversationId", "c2");
  json::object other_key = conversation("threadId", "c1");

  std::string of_process = session_of(run(world, stdio));
  std::string of_transport = session_of(run(world, legacy_http));
  std::string of_chat = session_of(run(world, modern_http, chat));
  CHECK(session_of(run(world, stdio)) == of_process);
  CHECK(session_of(run(world, legacy_http)) == of_transport);
  CHECK(session_of(run(world, legacy_http, chat)) == of_transport);  // the transport comes first
  CHECK(session_of(run(world, modern_http, chat)) == of_chat);
  CHECK(session_of(run(world, stdio, chat)) == of_chat);  // before the process default
  // Each of these is another one.
  std::set<std::string> all = {of_process, of_transport, of_chat};
  CHECK(all.insert(session_of(run(world, other_http))).second);
  CHECK(all.insert(session_of(run(world, modern_http, other_chat))).second);
  CHECK(all.insert(session_of(run(world, modern_http, other_key))).second);
  CHECK(all.insert(session_of(run(world, eve, chat))).second);  // the word of another principal
  // Modern HTTP without anything: never shared.
  CHECK(all.insert(session_of(run(world, modern_http))).second);
  CHECK(all.insert(session_of(run(world, modern_http))).second);
}

TEST_CASE("a conversation id that is no text, empty or too long does not count") {
  fake::World world;
  std::string process = session_of(run(world, world.peer));
  std::string long_id(300, 'x');
  json::object number, empty = conversation("threadId", "");
  number["threadId"] = 7;
  for (const json::object& meta : {number, empty, conversation("threadId", long_id.c_str())})
    CHECK(session_of(run(world, world.peer, meta)) == process);
}

TEST_CASE("the first result of a session names it, the next ones do not") {
  fake::World world;
  auto first = world.call("run_python", code("ok")), second = world.call("run_python", code("ok"));
  CHECK(fake::text_of(first) == "[New session " + session_of(first) + ": pass session=\"" +
                                    session_of(first) + "\" to come back to it.]\n(no output)");
  CHECK(fake::text_of(second) == "(no output)");
}

TEST_CASE("fifty first calls at once make one session and one kernel") {
  fake::World world;
  std::set<std::string> handles;
  std::size_t refused = 0;
  for (const auto& result : world.call_together(50, "run_python", code("ok"))) {
    if (result._meta)
      handles.insert(session_of(result));
    else
      ++refused;  // the queue of a session is bounded
  }
  CHECK(handles.size() == 1);
  CHECK(world.backend.starts == 1);
  CHECK(refused + world.backend.cells.size() == 50);
}

TEST_CASE("a handle that does not name one of the caller's sessions is explained") {
  fake::World world;
  mcp::Peer eve = peer("eve", "", true);
  std::string mine = session_of(run(world, world.peer)), foreign = session_of(run(world, eve));
  for (std::string handle :
       {std::string("nonsense"), foreign, std::string("../../etc"), std::string(1'000'000, 'x')}) {
    CAPTURE(handle.substr(0, 50));
    auto result = world.call("run_python", with_session(code("ok"), handle));
    std::string text = fake::text_of(result);
    CHECK(result.isError == true);
    CHECK(contains(text, "is unknown, or was closed and deleted. Nothing was run."));
    CHECK(contains(text, "Your open sessions: " + mine + "."));
    CHECK(!contains(text, "open sessions: " + foreign));
    CHECK(contains(text, "create_session"));
    CHECK(text.size() < 500);
  }
  CHECK(world.backend.cells.size() == 2);
}

TEST_CASE("an empty handle means the default session") {
  fake::World world;
  std::string process = session_of(run(world, world.peer));
  CHECK(session_of(world.call("run_python", with_session(code("ok"), ""))) == process);
}

TEST_CASE("create_session") {
  fake::World world;
  struct Row {
    const char* arguments;
    const char* text;
    bool fails;
  };
  for (const Row& row :
       {Row{R"({})", "Created session ", false}, Row{R"({"name":"Zoë's 数据"})", "Created", false},
        Row{R"({"name":"Zoë's 数据"})", "You already have a session named", true},
        Row{R"({"name":""})", "expected 1 to 64 characters on one line", true},
        Row{R"({"name":"a\nb"})", "expected 1 to 64 characters on one line", true},
        Row{R"({"template":"absent"})", "There is no template \"absent\"", true},
        Row{R"({"template":"/usr/bin/python3"})", "the name of a template, not a path", true},
        Row{R"({"network":true})", "Network access is off", true},
        Row{R"({"network":"perhaps"})", "arguments.network: expected boolean", true}}) {
    CAPTURE(row.arguments);
    auto result = world.call("create_session", json::parse(row.arguments).as_object());
    CHECK(result.isError.value_or(false) == row.fails);
    CHECK(contains(fake::text_of(result), row.text));
  }
  CHECK(world.backend.starts == 0);  // kernels start with the first execution
  CHECK(world.sessions.live("local").size() == 2);
}

TEST_CASE("sessions are bounded: what rests goes back to disk, what works stays") {
  tools::SessionPolicy policy;
  policy.max_sessions = 2;
  fake::World world(policy);
  std::string first = session_of(world.call("run_python", code("ok")));
  world.call("create_session", {});
  SUBCASE("one without a kernel makes room, and its handle still finds it if it has files") {
    CHECK(!world.call("create_session", {}).isError.value_or(false));
    CHECK(world.sessions.find("local", first) != nullptr);
    CHECK(world.sessions.live("local").size() == 2);
  }
  SUBCASE("where all have kernels, the next is refused with advice") {
    for (const auto& session : world.sessions.live("local"))
      world.call("run_python", with_session(code("ok"), session->handle()));
    auto refused = world.call("create_session", {});
    CHECK(refused.isError == true);
    CHECK(contains(fake::text_of(refused), "Too many sessions are open (2). Close one"));
  }
}

TEST_CASE("kernels are bounded: the next start is refused, and works once one was closed") {
  tools::SessionPolicy policy;
  policy.max_live = 1;
  fake::World world(policy);
  std::string first = session_of(world.call("run_python", code("ok")));
  world.call("create_session", {});
  std::string second = world.sessions.live("local").front()->handle();
  auto refused = world.call("run_python", with_session(code("ok"), second));
  CHECK(refused.isError == true);
  CHECK(contains(fake::text_of(refused), "not run: Too many kernels run at once (1)"));
  json::object which;
  which["session"] = first;
  world.call("close_session", which);
  auto result = world.call("run_python", with_session(code("ok"), second));
  CHECK(!result.isError.value_or(false));
  CHECK(contains(fake::text_of(result), "New session " + second));  // said by the first that ran
}

TEST_CASE("a kernel without use is stopped, and the next result says so") {
  tools::SessionPolicy policy;
  policy.session_ttl = 1s;
  fake::World world(policy);
  world.call("run_python", code("ok"));
  world.give_up_after(4s, world.sessions.expire());
  CHECK(world.backend.sandboxes.empty());
  CHECK(
      contains(fake::text_of(world.call("run_python", code("ok"))),
               "A new kernel was started: the last one was stopped after 1 seconds without use."));
  CHECK(world.backend.starts == 2);
}

TEST_CASE("close_session deletes the session, and another one is the default then") {
  fake::World world;
  std::string handle = session_of(world.call("run_python", code("ok")));
  auto directory = world.directory / "sessions" / handle;
  CHECK(std::filesystem::exists(directory));
  json::object which;
  which["session"] = handle;
  CHECK(contains(fake::text_of(world.call("close_session", which)), "its files were deleted"));
  CHECK(!std::filesystem::exists(directory));
  CHECK(world.call("close_session", which).isError == true);
  CHECK(session_of(world.call("run_python", code("ok"))) != handle);
}

TEST_CASE("a close whose caller gave up is brought to its end") {
  fake::World world;
  std::string handle = session_of(world.call("run_python", code("ok")));
  world.give_up_after(0ms, world.sessions.close("local", handle));
  world.wait(world.sessions.shutdown());
  CHECK(!std::filesystem::exists(world.directory / "sessions" / handle));
  CHECK(world.backend.sandboxes.empty());
}

TEST_CASE("the end of the process keeps what has files or a name") {
  fake::World world;
  std::string empty = session_of(world.call("run_python", code("ok")));
  json::object name;
  name["name"] = "kept";
  world.call("create_session", name);
  std::string named = world.sessions.live("local").front()->handle();
  world.call("create_session", {});
  std::string filled = world.sessions.live("local").front()->handle();
  json::object upload = with_session(json::object(), filled);
  upload["name"] = "a.txt";
  upload["text"] = "a";
  world.call("upload_file", upload);
  world.wait(world.sessions.shutdown());
  auto exists = [&](const std::string& handle) {
    return std::filesystem::exists(world.directory / "sessions" / handle / "session.json");
  };
  CHECK(!exists(empty));
  CHECK(exists(named));
  CHECK(exists(filled));
}

TEST_CASE("list_sessions shows the caller's own, those on disk as well") {
  fake::World world;
  CHECK(fake::text_of(world.call("list_sessions", {})) ==
        "No sessions. run_python makes the default one.");
  mcp::Peer eve = peer("eve", "", true);
  std::string mine = session_of(run(world, world.peer)), foreign = session_of(run(world, eve));
  sandbox::SessionRecord record;
  record.id = "on-disk";
  record.principal = "local";
  record.name = "old";
  world.store.create(record);
  std::string text = fake::text_of(world.call("list_sessions", {}));
  CHECK(contains(text, mine + ": idle, kernel starts: 1"));
  CHECK(contains(text, "on-disk \"old\": on disk, files only"));
  CHECK(!contains(text, foreign));
}

TEST_CASE("a state directory that cannot be used is explained, and nothing is run") {
  fake::World world;
  std::filesystem::remove_all(world.directory);
  std::ofstream(world.directory) << "a file";
  auto result = world.call("run_python", code("ok"));
  CHECK(result.isError == true);
  CHECK(contains(fake::text_of(result), world.directory.string()));
  CHECK(contains(fake::text_of(result), "No session was made."));
  CHECK(world.backend.starts == 0);
}
