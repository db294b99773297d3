// What each revision gets to see: the members that exist in it, and no others.

#include "mcp/shape.hpp"

#include <doctest/doctest.h>

#include "tests/mcp/conversation.hpp"

namespace {

std::string keys(const json::value& object) {
  std::string out;
  for (const auto& member : object.as_object()) out += std::string(member.key()) + " ";
  return out;
}

const char* const kLegacy[] = {"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};

}  // namespace

TEST_CASE("a tool has title and annotations from the revisions that know them") {
  struct Row {
    const char* revision;
    const char* keys;
  };
  for (const Row& row : {
           Row{"2024-11-05", "name description inputSchema "},
           Row{"2025-03-26", "name description inputSchema annotations "},
           Row{"2025-06-18", "name title description inputSchema annotations "},
           Row{"2025-11-25", "name title description inputSchema annotations "},
       }) {
    CAPTURE(row.revision);
    Conversation client;
    json::value initialized = client.initialize(row.revision);
    bool titled = std::string_view(row.keys).find("title") != std::string_view::npos;
    CHECK(initialized.at("serverInfo").as_object().contains("title") == titled);
    CHECK(keys(client.result("tools/list").at("tools").at(0)) == row.keys);
    json::value templates = client.result("resources/templates/list");
    CHECK(templates.at("resourceTemplates").at(0).as_object().contains("title") == titled);
  }
  Conversation client;
  CHECK(keys(client.result("tools/list", modern()).at("tools").at(0)) ==
        "name title description inputSchema annotations ");
}

TEST_CASE("a legacy result is the method's fields alone") {
  struct Row {
    const char* method;
    const char* params;
    const char* keys;
  };
  for (const char* revision : kLegacy) {
    CAPTURE(revision);
    Conversation client;
    CHECK(keys(client.initialize(revision)) ==
          "protocolVersion capabilities serverInfo instructions ");
    for (const Row& row : {
             Row{"ping", "{}", ""},
             Row{"logging/setLevel", R"({"level":"debug"})", ""},
             Row{"tools/list", "{}", "tools "},
             Row{"tools/call", R"({"name":"echo","arguments":{"text":"a"}})", "content "},
             Row{"tools/call", R"({"name":"refuse"})", "content isError "},
             Row{"resources/list", "{}", "resources "},
             Row{"resources/templates/list", "{}", "resourceTemplates "},
             Row{"resources/read", R"({"uri":"test://here"})", "contents "},
         }) {
      CAPTURE(row.method);
      CHECK(keys(client.result(row.method, row.params)) == row.keys);
    }
  }
}

TEST_CASE("a modern result says its type, who we are, and how long it may be kept") {
  struct Row {
    const char* method;
    const char* fields;
    const char* keys;
    const char* scope;
  };
  for (const Row& row : {
           Row{"server/discover", "",
               "supportedVersions capabilities instructions resultType ttlMs cacheScope _meta ",
               "public"},
           Row{"tools/list", "", "tools resultType ttlMs cacheScope _meta ", "public"},
           Row{"resources/list", "", "resources resultType ttlMs cacheScope _meta ", "public"},
           Row{"resources/templates/list", "",
               "resourceTemplates resultType ttlMs cacheScope _meta ", "public"},
           Row{"resources/read", R"("uri":"test://here")",
               "contents resultType ttlMs cacheScope _meta ", "private"},
           Row{"tools/call", R"("name":"echo","arguments":{"text":"a"})",
               "content resultType _meta ", nullptr},
           Row{"tools/call", R"("name":"refuse")", "content isError resultType _meta ", nullptr},
       }) {
    CAPTURE(row.method);
    Conversation client;
    json::value result = client.result(row.method, modern(row.fields));
    CHECK(keys(result) == row.keys);
    CHECK(result.at("resultType") == "complete");
    CHECK(result.at("_meta").at("io.modelcontextprotocol/serverInfo") ==
          json::parse(R"({"name":"pykeep","title":"Pykeep","version":"0.1"})"));
    if (!row.scope) continue;
    CHECK(result.at("cacheScope") == row.scope);
    CHECK(result.at("ttlMs") == (std::string_view(row.scope) == "public" ? 3600000 : 0));
  }
}

TEST_CASE("what a tool puts into _meta stays beside ours") {
  json::object result = json::parse(R"({"content":[],"_meta":{"io.pykeep/x":1}})").as_object();
  mcp::Implementation self{"pykeep", {}, "0.1"};
  mcp::complete(result, mcp::Revision::v2025_11_25, mcp::Caching::none, self);
  CHECK(json::serialize(result) == R"({"content":[],"_meta":{"io.pykeep/x":1}})");
  mcp::complete(result, mcp::Revision::v2026_07_28, mcp::Caching::none, self);
  CHECK(keys(result["_meta"]) == "io.pykeep/x io.modelcontextprotocol/serverInfo ");
}

TEST_CASE("only what is offered is advertised") {
  Conversation client;
  json::value all = json::parse(R"({"tools":{},"resources":{},"logging":{}})");
  CHECK(client.initialize("2025-11-25").at("capabilities") == all);
  json::value discovered = client.result("server/discover", modern());
  CHECK(discovered.at("capabilities") == all);
  CHECK(discovered.at("supportedVersions") == json::parse(R"(["2026-07-28"])"));

  mcp::Server bare({"pykeep", {}, "0.1"}, "", {}, nullptr);
  boost::asio::io_context io;
  FakeOutbox out;
  mcp::Peer peer;
  auto serve = [&](const char* text) {
    boost::asio::co_spawn(io, bare.handle(json::parse(text), peer, out),
                          [](std::exception_ptr failure) { CHECK_FALSE(failure); });
    io.restart();
    io.run();
    return std::exchange(out.messages, {}).at(0);
  };
  json::value hello = serve(
      R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}})");
  CHECK(json::serialize(hello.at("result")) ==
        R"({"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},)"
        R"("serverInfo":{"name":"pykeep","version":"0.1"}})");
  json::value none = serve(R"({"jsonrpc":"2.0","id":1,"method":"resources/list"})");
  CHECK(none.at("error").at("code") == -32601);
}

TEST_CASE("a list is one page, without a cursor") {
  Conversation client;
  for (const char* method : {"tools/list", "resources/list", "resources/templates/list"}) {
    CAPTURE(method);
    for (const char* params : {"{}", R"({"cursor":""})", R"({"cursor":null})"}) {
      json::value page = client.result(method, params);
      CHECK_FALSE(page.as_object().contains("code"));
      CHECK_FALSE(page.as_object().contains("nextCursor"));
    }
    CHECK(client.result(method, R"({"cursor":"x"})").at("code") == -32602);
    CHECK(client.result(method, R"({"cursor":5})").at("code") == -32602);
    CHECK(client.result(method, modern(R"("cursor":"x")")).at("code") == -32602);
  }
}
